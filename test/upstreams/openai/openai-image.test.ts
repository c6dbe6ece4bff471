import OpenAI, { APIError, APIUserAbortError, toFile } from "openai";
import type { ImageEditStreamEvent, ImageGenStreamEvent, ImagesResponse } from "openai/resources/images";
import sharp from "sharp";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createImageSource } from "../stand-in/image-source.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "./openai.ts";
import { shadeOf } from "./openai-image.ts";

let upstream: OpenAiUpstream;
let client: OpenAI;

function createClient(apiKey = "test-key"): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${upstream.baseUrl}/v1`, maxRetries: 0 });
}

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  client = createClient();
});
afterAll(async () => await upstream.close());
afterEach(() => {
  upstream.requests.length = 0;
});

const body = { model: "gpt-image-2", prompt: "A lighthouse." } as const;

function imagesOf({ data = [] }: ImagesResponse): Buffer[] {
  return data.map(({ b64_json = "" }) => Buffer.from(b64_json, "base64"));
}

async function lookAt(image: Buffer | undefined) {
  if (image === undefined) throw new Error("no image");
  const { format, width, height, hasAlpha } = await sharp(image).metadata();
  const { channels } = await sharp(image).stats();
  return { format, width, height, hasAlpha, shade: Math.round(channels[0]?.mean ?? -1) };
}

async function pngFile(name: string, width = 64) {
  const source = { format: "png", width, height: 64, isTransparent: false, shade: 1 } as const;
  return await toFile(await createImageSource().image(source), name, { type: "image/png" });
}

async function errorOf(call: PromiseLike<unknown>): Promise<APIError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof APIError) return error;
    throw error;
  }
  throw new Error("no error");
}

describe("the images of the stand-in", () => {
  const formats = ["png", "jpeg", "webp"] as const;

  test.for(formats)("are real %s of any length", async (format) => {
    const source = createImageSource();
    const spec = { format, width: 320, height: 200, isTransparent: format !== "jpeg", shade: 80 };
    const plain = await source.image(spec);
    expect(await lookAt(plain)).toMatchObject({
      format,
      width: 320,
      height: 200,
      hasAlpha: format !== "jpeg",
    });
    for (const bytes of [10_000, 65_536 + plain.length, 65_540 + plain.length, 200_000, 1_048_576]) {
      const length = format === "webp" ? bytes - (bytes % 2) : bytes;
      const padded = await source.image({ ...spec, bytes: length });
      expect(padded).toHaveLength(length);
      expect(await lookAt(padded)).toEqual(await lookAt(plain));
    }
  });
});

describe("OpenAI's own client against the stand-in", () => {
  test("gets an image and what it cost", async () => {
    const response = await client.images.generate({ ...body, quality: "high" });
    expect(response).toMatchObject({
      output_format: "png",
      quality: "high",
      size: "1024x1024",
      background: "opaque",
    });
    expect(response.usage).toEqual({
      input_tokens: 4,
      input_tokens_details: { text_tokens: 4, image_tokens: 0 },
      output_tokens: 4160,
      output_tokens_details: { text_tokens: 0, image_tokens: 4160 },
      total_tokens: 4164,
    });
    const [image] = imagesOf(response);
    expect(await lookAt(image)).toMatchObject({ format: "png", width: 1024, height: 1024, hasAlpha: false });
    expect(upstream.requests).toMatchObject([
      { path: "/v1/images/generations", json: { ...body, quality: "high" }, fate: "finished" },
    ]);
  });

  test.for([
    ["jpeg", "auto", false],
    ["webp", "transparent", true],
    ["png", "transparent", true],
  ] as const)("gets several as %s, %s", async ([output_format, background, hasAlpha]) => {
    const asked = { output_format, background, n: 3, size: "1536x864" } as const;
    const images = imagesOf(await client.images.generate({ ...body, ...asked }));
    const seen = await Promise.all(images.map(lookAt));
    expect(seen).toMatchObject(
      Array.from({ length: 3 }, () => ({ format: output_format, width: 1536, height: 864, hasAlpha })),
    );
    for (const [index, { shade }] of seen.entries()) {
      expect(Math.abs(shade - shadeOf(index))).toBeLessThanOrEqual(2);
    }
  });

  test("gets previews and an image as events", async () => {
    const stream = await client.images.generate({ ...body, stream: true, partial_images: 2 });
    const events: ImageGenStreamEvent[] = await Array.fromAsync(stream);
    expect(events.map(({ type }) => type)).toEqual([
      "image_generation.partial_image",
      "image_generation.partial_image",
      "image_generation.completed",
    ]);
    expect(events.map((event) => "partial_image_index" in event && event.partial_image_index)).toEqual([
      0,
      1,
      false,
    ]);
    const last = events.at(-1);
    expect(last?.type === "image_generation.completed" && last.usage.output_tokens).toBe(1056);
    for (const { b64_json } of events) {
      expect(await lookAt(Buffer.from(b64_json, "base64"))).toMatchObject({ format: "png", width: 1024 });
    }
  });

  test("edits several files, as JSON and as events", async () => {
    const image = [await pngFile("a.png"), await pngFile("b.png", 96)];
    const response = await client.images.edit({
      ...body,
      image,
      n: 2,
      output_compression: 50,
      output_format: "jpeg",
    });
    expect(imagesOf(response)).toHaveLength(2);
    expect(response.usage?.input_tokens_details).toEqual({ text_tokens: 4, image_tokens: 600 });
    expect(upstream.requests[0]?.headers["content-type"]).toMatch(/^multipart\/form-data/);

    const stream = await client.images.edit({
      ...body,
      image: await pngFile("a.png"),
      stream: true,
      partial_images: 1,
    });
    const events: ImageEditStreamEvent[] = await Array.fromAsync(stream);
    expect(events.map(({ type }) => type)).toEqual(["image_edit.partial_image", "image_edit.completed"]);
  });

  test.for<[string, Record<string, unknown>, number, string | null]>([
    ["no such model", { model: "dall-e-3" }, 404, "model_not_found"],
    ["no prompt", { prompt: undefined }, 400, "missing_required_parameter"],
    ["an empty prompt", { prompt: "" }, 400, "string_too_short"],
    ["a long prompt", { prompt: "é".repeat(32_001) }, 400, "string_too_long"],
    ["too many", { n: 11 }, 400, "invalid_value"],
    ["a narrow size", { size: "3840x1024" }, 400, "invalid_value"],
    ["an odd size", { size: "1001x1001" }, 400, "invalid_value"],
    ["a size off an older model's list", { model: "gpt-image-1.5", size: "1536x864" }, 400, "invalid_value"],
    ["a quality of newer models", { quality: "max" }, 400, "invalid_value"],
    ["an unknown format", { output_format: "gif" }, 400, "invalid_value"],
    ["a transparent jpeg", { background: "transparent", output_format: "jpeg" }, 400, "invalid_value"],
    ["a compressed png", { output_compression: 50 }, 400, "invalid_value"],
    ["too many previews", { stream: true, partial_images: 4 }, 400, "invalid_value"],
    ["events of several images", { stream: true, n: 2 }, 400, null],
    ["a response format", { response_format: "b64_json" }, 400, "unknown_parameter"],
    ["an unknown parameter", { seed: 1 }, 400, "unknown_parameter"],
  ])("is refused: %s", async ([, change, status, code]) => {
    const error = await errorOf(client.images.generate({ ...body, ...change }));
    expect(error).toMatchObject({ status, code, type: "invalid_request_error" });
  });

  test("is refused: a wrong key, no image, too many, a file that is not what it says", async () => {
    expect(await errorOf(createClient("sk-wrong").images.generate(body))).toMatchObject({ status: 401 });
    const edit = (image: File[]) => errorOf(client.images.edit({ ...body, image }));
    expect(await edit([])).toMatchObject({ status: 400 });
    const png = await pngFile("a.png");
    expect(await edit(Array.from({ length: 17 }, () => png))).toMatchObject({ code: "invalid_value" });
    for (const type of ["image/jpeg", "application/octet-stream"]) {
      const file = await toFile(png, "a.png", { type });
      expect(await edit([file])).toMatchObject({ code: "invalid_image_file" });
    }
  });

  test.for([
    [400, "moderation_blocked"],
    [429, "rate_limit_exceeded"],
    [500, null],
  ] as const)("takes %i %s for what it is", async ([status, code]) => {
    const type = "image_generation_user_error";
    upstream.next({ kind: "error", status, code, type, headers: { "retry-after": "3" } });
    const error = await errorOf(client.images.generate(body));
    expect(error).toMatchObject({ status, code, type });
    expect(error.headers?.get("retry-after")).toBe("3");
  });

  test.for([{}, { framing: "length" }, { cutWith: "reset" }] as const)(
    "fails on a cut answer: %o",
    async (how) => {
      upstream.next({ kind: "image", imageBytes: 50_000, cutAfterBytes: 20_000, ...how });
      await expect(client.images.generate(body)).rejects.toThrow();
      expect(upstream.requests).toMatchObject([{ fate: "cut", sentBytes: 20_000 }]);
    },
  );

  test("leaves a mark when it gives up, before or amid the answer", async () => {
    for (const behaviour of [
      { beforeHeaders: () => new Promise<void>(() => undefined) },
      { stallAfterBytes: 9_000 },
    ]) {
      upstream.next({ kind: "image", imageBytes: 50_000, ...behaviour });
      const controller = new AbortController();
      const count = upstream.requests.length + 1;
      const waiting = errorOf(client.images.generate(body, { signal: controller.signal }));
      const request = await upstream.received(count);
      controller.abort();
      expect(await waiting).toBeInstanceOf(APIUserAbortError);
      expect(await request.ended).toBe("closed_by_client");
    }
  });

  test("sends each event when its gate opens", async () => {
    const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    upstream.next({ kind: "image", partials: 2, beforeEvent: (index) => gates[index]?.promise });
    const stream = await client.images.generate({ ...body, stream: true });
    const events = stream[Symbol.asyncIterator]();
    for (const gate of gates) {
      gate.resolve();
      expect((await events.next()).done).toBe(false);
    }
    expect((await events.next()).done).toBe(true);
  });

  test("meets what the prompt asks for", async () => {
    const ask = (marker: string) => client.images.generate({ ...body, prompt: `Hi [[${marker}]]` });
    expect(imagesOf(await ask("image=1048576 framing=length"))[0]).toHaveLength(1_048_576);
    expect((await ask("count=0")).data).toEqual([]);
    expect((await ask("content=url")).data?.[0]).toEqual({ url: "https://images.invalid/1.png" });
    expect(await errorOf(ask("status=400 code=moderation_blocked"))).toMatchObject({
      code: "moderation_blocked",
    });
    expect(imagesOf(await ask("delay=1"))).toHaveLength(1);
  });
});
