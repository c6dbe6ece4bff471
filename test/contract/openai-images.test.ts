import OpenAI, { toFile } from "openai";
import sharp from "sharp";
import { beforeAll, describe, expect, test } from "vitest";
import { openSharedStandalone, type SharedStandalone } from "../support/processes/shared-standalone.ts";
import type { OpenAiUpstream } from "../upstreams/openai/openai.ts";
import { readForm } from "../upstreams/openai/openai-image-request.ts";
import { openAiFailure } from "./openai-failure.ts";

const remote = { model: "openai/gpt-image-1.5", prompt: "A lighthouse." } as const;
const local = { model: "local/painter", prompt: "A lighthouse." } as const;
const plain = { model: "local/postcard", prompt: "A lighthouse." } as const;

let upstream: OpenAiUpstream;
let stack: SharedStandalone;
let client: OpenAI;
let png: Buffer;

beforeAll(async () => {
  stack = await openSharedStandalone();
  ({ upstream } = stack);
  client = new OpenAI({ apiKey: stack.inferenceKey, baseURL: `${stack.baseUrl}/api/v1`, maxRetries: 0 });
  png = await picture(32, 32).png().toBuffer();
});

function picture(width: number, height: number, alpha = 1) {
  return sharp({ create: { width, height, channels: 4, background: { r: 9, g: 90, b: 200, alpha } } });
}

function bytesOf(image: { b64_json?: string } | undefined): Buffer {
  return Buffer.from(image?.b64_json ?? "", "base64");
}

async function eventsOf<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const events: T[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe("OpenAI's client generates", () => {
  test("with a provider: its parameters arrive, its tokens come back by their names", async () => {
    const { data: answer, response } = await client.images
      .generate({
        ...remote,
        n: 2,
        size: "1536x1024",
        quality: "hd",
        background: "transparent",
        output_format: "webp",
        output_compression: 80,
        moderation: "low",
        response_format: "b64_json",
        user: "someone",
      })
      .withResponse();
    expect(upstream.requests.at(-1)?.json).toEqual({
      model: "gpt-image-1.5",
      prompt: remote.prompt,
      n: 2,
      size: "1536x1024",
      quality: "high",
      background: "transparent",
      output_format: "webp",
      output_compression: 80,
      moderation: "low",
    });
    const { data = [], created, usage, ...look } = answer;
    expect(look).toEqual({
      output_format: "webp",
      size: "1536x1024",
      quality: "high",
      background: "transparent",
    });
    expect(created).toBeGreaterThan(0);
    expect(data.map((image) => bytesOf(image).toString("latin1", 8, 12))).toEqual(["WEBP", "WEBP"]);
    const text = Math.ceil(remote.prompt.length / 4);
    expect(usage).toMatchObject({
      input_tokens: text,
      output_tokens: 8320,
      total_tokens: text + 8320,
      input_tokens_details: { text_tokens: text, image_tokens: 0 },
      output_tokens_details: { text_tokens: 0, image_tokens: 8320 },
    });
    expect(response.headers.get("x-ignored-parameters")).toBeNull();
    expect(response.headers.get("x-generation-id")).toMatch(/^gen-img-/);
  });

  test("with the built-in painter, which has no moderation and says what it chose itself by leaving it out", async () => {
    const { data: answer, response } = await client.images
      .generate({ ...local, prompt: "a gryphon", size: "auto", quality: "auto", moderation: "auto" })
      .withResponse();
    expect(answer).toMatchObject({ output_format: "png", size: "1024x1024" });
    expect(answer).not.toHaveProperty("quality");
    expect(answer).not.toHaveProperty("background");
    expect(answer.data?.[0]).toEqual({ b64_json: expect.stringMatching(/^iVBOR/) });
    expect(response.headers.get("x-ignored-parameters")).toBe("moderation");
    expect(response.headers.get("x-unrecognized-prompt-words")).toBe("gryphon");
  });

  test.for([0, 1, 2])("as a stream with %i previews", async (partial_images) => {
    const stream = await client.images.generate({
      ...remote,
      stream: true,
      partial_images,
      size: "1024x1024",
    });
    const events = await eventsOf(stream);
    expect(upstream.requests.at(-1)?.json).toMatchObject({ stream: true, partial_images });
    const look = {
      output_format: "png",
      size: "1024x1024",
      quality: "auto",
      background: "auto",
      created_at: expect.any(Number),
      b64_json: expect.stringMatching(/^iVBOR/),
    };
    expect(events).toEqual([
      ...Array.from({ length: partial_images }, (_, partial_image_index) => ({
        type: "image_generation.partial_image",
        partial_image_index,
        ...look,
      })),
      {
        type: "image_generation.completed",
        ...look,
        usage: expect.objectContaining({ output_tokens: 1056, total_tokens: 1056 + 4 }),
      },
    ]);
  });

  test("as a stream also where the model gives no previews", async () => {
    const { data: stream, response } = await client.images
      .generate({ ...plain, stream: true, partial_images: 2 })
      .withResponse();
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("x-ignored-parameters")).toBe("partial_images");
    expect(await eventsOf(stream)).toMatchObject([
      { type: "image_generation.completed", size: "1024x1024", usage: { total_tokens: 0 } },
    ]);
  });

  test("with as many previews of the painter as it asked for", async () => {
    const stream = await client.images.generate({ ...local, stream: true, partial_images: 1 });
    const types = (await eventsOf(stream)).map(({ type }) => type);
    expect(types).toEqual(["image_generation.partial_image", "image_generation.completed"]);
  });
});

describe("OpenAI's client edits", () => {
  const mask = () => picture(32, 32, 0).png().toBuffer();

  test("several files with a mask, by a provider", async () => {
    const jpeg = await picture(16, 16).jpeg().toBuffer();
    const answer = await client.images.edit({
      ...remote,
      // Types are told by the bytes.
      image: [await toFile(png, "one.bin"), await toFile(jpeg, "two.png", { type: "image/png" })],
      mask: await toFile(await mask(), "mask.png"),
      input_fidelity: "high",
      n: 1,
      size: "1024x1024",
    });
    const request = upstream.requests.at(-1);
    expect(request?.path).toBe("/v1/images/edits");
    const form = request === undefined ? undefined : await readForm(request);
    const files = [...(form ?? [])].flatMap(([name, value]) =>
      value instanceof File ? [[name, value]] : [],
    );
    expect(files.map(([name, file]) => [name, (file as File).type, (file as File).size])).toEqual([
      ["image[]", "image/png", png.length],
      ["image[]", "image/jpeg", jpeg.length],
      ["mask", "image/png", (await mask()).length],
    ]);
    expect(form?.get("input_fidelity")).toBe("high");
    expect(answer.size).toBe("1024x1024");
    expect(answer.usage).toMatchObject({ input_tokens_details: { text_tokens: 4, image_tokens: 600 } });
  });

  test("one file, as a stream of its own events", async () => {
    const stream = await client.images.edit({
      ...remote,
      image: await toFile(png, "one.png"),
      stream: true,
      partial_images: 1,
    });
    expect(await eventsOf(stream)).toMatchObject([
      { type: "image_edit.partial_image", partial_image_index: 0 },
      { type: "image_edit.completed", usage: { input_tokens_details: { image_tokens: 300 } } },
    ]);
  });

  test("with the painter, which takes references and no mask", async () => {
    const image = await toFile(png, "one.png");
    const answer = await client.images.edit({ ...local, image });
    expect(bytesOf(answer.data?.[0]).length).toBeGreaterThan(1000);
    const refused = await openAiFailure(client.images.edit({ ...local, image, mask: image }));
    expect(refused).toMatchObject({
      status: 400,
      error: {
        metadata: {
          reason: "unsupported_parameter",
          issues: [{ path: "mask", message: "is not taken by this model" }],
        },
      },
    });
  });

  test("what JSON names by URL", async () => {
    const image_url = `data:image/png;base64,${png.toString("base64")}`;
    const answer = await client.post<OpenAI.ImagesResponse>("/images/edits", {
      body: { ...remote, images: [{ image_url }, { image_url }], mask: { image_url } },
    });
    expect(answer.usage?.input_tokens_details.image_tokens).toBe(600);
  });
});

describe("OpenAI's client is told", () => {
  test.for([
    ["that images have no address", { response_format: "url" }, "response_format", "must be one of b64_json"],
    ["what a size is", { size: "1024X1024" }, "size", "with a small x between, such as 1024x1024, or auto"],
    ["that a size is not made", { size: "1792x1024" }, "size", "is not a size that this model makes"],
    ["how many previews there are", { stream: true, partial_images: 4 }, "partial_images", "3"],
  ] as const)("%s", async ([, change, path, words]) => {
    const request = { ...remote, ...change } as OpenAI.ImageGenerateParamsNonStreaming;
    const error = await openAiFailure(client.images.generate(request));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error.error).toMatchObject({
      metadata: { issues: [{ path, message: expect.stringContaining(words) }] },
    });
  });

  test("what went wrong before and in a stream, with no type or param to trip over", async () => {
    const before = await openAiFailure(
      client.images.generate({ ...remote, prompt: "[[status=400 code=moderation_blocked]]", stream: true }),
    );
    expect(before.message).toBe("502 Provider returned error");
    expect(before).toMatchObject({ status: 502, code: 502, type: undefined, param: undefined });
    upstream.next({ kind: "image", partials: 1, errorAtEvent: 1 });
    const stream = await client.images.generate({ ...remote, stream: true, partial_images: 1 });
    const amid = await openAiFailure(eventsOf(stream));
    expect(amid.error).toMatchObject({ code: 502, message: "Provider returned error" });
  });

  test("which of its files is no image", async () => {
    const image = [await toFile(png, "one.png"), await toFile(Buffer.from("<html>"), "two.png")];
    const error = await openAiFailure(client.images.edit({ ...remote, image }));
    expect(error.error).toMatchObject({
      metadata: {
        reason: "reference_refused",
        issues: [{ path: "image.1", message: "is not a PNG, JPEG or WebP image" }],
      },
    });
    const mask = await toFile(await picture(32, 32).webp().toBuffer(), "mask.png");
    const masked = await openAiFailure(
      client.images.edit({ ...remote, image: await toFile(png, "a"), mask }),
    );
    expect(masked.error).toMatchObject({ metadata: { issues: [{ path: "mask" }] } });
  });

  test("nothing but its models, each also alone, with the slash as it stands and encoded", async () => {
    const models = [];
    for await (const model of client.models.list()) models.push(model);
    const listed = models.find(({ id }) => id === "openai/gpt-image-1.5");
    expect(listed).toMatchObject({ object: "model", owned_by: "openai", created: expect.any(Number) });
    expect(await client.models.retrieve("openai/gpt-image-1.5")).toEqual(listed);
    expect(await client.get("/models/openai/gpt-image-1.5")).toEqual(listed);
    expect(await client.models.retrieve("local/flite")).toMatchObject({ id: "local/flite", object: "model" });
    expect(await openAiFailure(client.models.retrieve("openai/none"))).toBeInstanceOf(OpenAI.NotFoundError);
    expect(await openAiFailure(client.models.retrieve("none"))).toBeInstanceOf(OpenAI.NotFoundError);
  });
});
