import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../test/upstreams/openai/openai.ts";
import { shadeOf } from "../../test/upstreams/openai/openai-image.ts";
import type { DrawBehaviour, ImageBehaviour } from "../../test/upstreams/openai/openai-image-behaviour.ts";
import { readForm } from "../../test/upstreams/openai/openai-image-request.ts";
import { createImageSource } from "../../test/upstreams/stand-in/image-source.ts";
import {
  type ImageAdapter,
  type ImageAnswer,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type ReferenceImage,
} from "../contract.ts";
import { createImageAdapter } from "./image.ts";

const apiKey = "sk-the-right-one";
const mebibyte = 1024 * 1024;
const source = createImageSource();
let upstream: OpenAiUpstream;
let http: OutboundHttp;
let adapter: ImageAdapter;

beforeAll(async () => {
  upstream = await startOpenAiUpstream({ apiKey });
  http = createOutboundHttp();
  adapter = createImageAdapter({
    http,
    generationsPath: "/v1/images/generations",
    editsPath: "/v1/images/edits",
  });
});
afterAll(async () => {
  await http.close();
  await upstream.close();
});
afterEach(() => {
  upstream.requests.length = 0;
});

const jsonCall: ImageCall = {
  upstreamModel: "gpt-image-2",
  prompt: "A lighthouse that nobody else may see.",
  n: 1,
  size: undefined,
  quality: "auto",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: {},
};
const eventCall: ImageCall = { ...jsonCall, stream: true };
const shapes: [string, ImageCall][] = [
  ["JSON", jsonCall],
  ["events", eventCall],
];

function generate(call: ImageCall, signal = new AbortController().signal): Promise<ImageAnswer> {
  return adapter.generate(call, {
    signal,
    connection: { baseUrl: upstream.baseUrl, apiKey },
    onSent: () => undefined,
  });
}

/** Reads to the end or the failure: what came, and the error. */
async function read(answer: ImageAnswer): Promise<{ outputs: ImageOutput[]; error: unknown }> {
  const outputs: ImageOutput[] = [];
  let error: unknown;
  try {
    for await (const output of answer.output) outputs.push(output);
  } catch (thrown) {
    error = thrown;
  }
  return { outputs, error };
}

async function outputsOf(call: ImageCall): Promise<ImageOutput[]> {
  return await Array.fromAsync((await generate(call)).output);
}

async function failure(call: ImageCall): Promise<unknown> {
  try {
    return (await read(await generate(call))).error;
  } catch (thrown) {
    return thrown;
  }
}

const drawn = (more: Partial<DrawBehaviour>): DrawBehaviour => ({ kind: "image", ...more });
const plain = (contentType: string, body: string, status = 200): ImageBehaviour => ({
  kind: "plain",
  status,
  headers: { "content-type": contentType },
  body,
});

/** What the stand-in draws as image number `index`. */
async function expected(index: number, more: object = {}): Promise<Buffer> {
  const spec = { format: "png", width: 1024, height: 1024, isTransparent: false } as const;
  return await source.image({ ...spec, shade: shadeOf(index), ...more });
}

function isImage(output: ImageOutput | undefined, kind: "image" | "partial", bytes: Buffer): boolean {
  return output?.kind === kind && bytes.equals(output.bytes);
}

const never = () => new Promise<void>(() => undefined);

describe.for(shapes)("an image as %s", ([shape, call]) => {
  test.for(["png", "jpeg", "webp"] as const)("gives the bytes of %s and what they are", async (format) => {
    upstream.next(drawn({ imageBytes: mebibyte, partials: 0 }));
    const outputs = await outputsOf({ ...call, format, size: { width: 1536, height: 864 } });
    expect(outputs).toMatchObject([{ kind: "image", mediaType: `image/${format}` }]);
    const image = await expected(0, { format, width: 1536, height: 864, bytes: mebibyte });
    expect(isImage(outputs[0], "image", image)).toBe(true);
    expect(upstream.requests[0]?.fate).toBe("finished");
  });

  test("says what the bytes are, not what was asked for", async () => {
    const jpeg = (await expected(0, { format: "jpeg" })).toString("base64");
    const members = `"b64_json":"${jpeg}","output_format":"png"`;
    upstream.next(
      shape === "JSON"
        ? plain("application/json", `{"data":[{${members}}]}`)
        : plain("text/event-stream", `data: {"type":"image_generation.completed",${members}}\n\n`),
    );
    expect(await outputsOf(call)).toMatchObject([{ mediaType: "image/jpeg" }]);
  });

  test("sends what was asked, allowed options with it, and nothing else can replace ours", async () => {
    const ours = ["model", "prompt", "n", "quality", "background", "output_format", "stream"];
    const unsent = ["size", "output_compression", "seed", "response_format", "user", "image", "image[]"];
    const options = Object.fromEntries([...ours, ...unsent].map((name) => [name, "x"]));
    await outputsOf({
      ...call,
      quality: "low",
      background: "transparent",
      options: { ...options, moderation: "low" },
    });
    expect(upstream.requests[0]?.json).toEqual({
      model: "gpt-image-2",
      prompt: call.prompt,
      n: 1,
      quality: "low",
      background: "transparent",
      output_format: "png",
      moderation: "low",
      ...(shape === "events" && { stream: true, partial_images: 2 }),
    });
    await outputsOf({ ...call, format: "webp", compression: 0, size: { width: 1024, height: 1536 } });
    expect(upstream.requests[1]?.json).toMatchObject({ size: "1024x1536", output_compression: 0 });
    expect(upstream.requests[1]?.json).not.toHaveProperty("quality");
    await outputsOf({ ...call, compression: 50 });
    expect(upstream.requests[2]?.json).not.toHaveProperty("output_compression");
  });

  test("sends references as the files of a form", async () => {
    const references: ReferenceImage[] = await Promise.all(
      (["png", "jpeg", "webp"] as const).map(async (format, index) => ({
        bytes: await expected(index, { format, bytes: 300_000 }),
        mediaType: `image/${format}` as const,
      })),
    );
    const prompt = 'Two lines\r\n--boundary "é"';
    const options = { input_fidelity: "high", moderation: "low" };
    const outputs = await outputsOf({
      ...call,
      prompt,
      references,
      options,
      format: "jpeg",
      compression: 70,
    });
    expect(outputs.at(-1)).toMatchObject({ kind: "image", mediaType: "image/jpeg" });
    const [request] = upstream.requests;
    expect(request).toMatchObject({ path: "/v1/images/edits", fate: "finished" });
    expect(request?.headers["content-length"]).toBe(String(request?.bytes.length));
    if (request === undefined) return;
    const form = [...((await readForm(request)) ?? [])];
    expect(Object.fromEntries(form.filter(([, value]) => !(value instanceof File)))).toEqual({
      ...options,
      model: "gpt-image-2",
      prompt,
      n: "1",
      output_format: "jpeg",
      output_compression: "70",
      ...(shape === "events" && { stream: "true", partial_images: "2" }),
    });
    const files = form.flatMap(([name, value]) => (value instanceof File ? [{ name, value }] : []));
    expect(files.map(({ name, value }) => [name, value.name, value.type])).toEqual([
      ["image[]", "image-1.png", "image/png"],
      ["image[]", "image-2.jpg", "image/jpeg"],
      ["image[]", "image-3.webp", "image/webp"],
    ]);
    for (const [index, { value }] of files.entries()) {
      expect(Buffer.from(await value.arrayBuffer()).equals(references[index]?.bytes ?? Buffer.of())).toBe(
        true,
      );
    }
  });

  test.for<[string, Partial<DrawBehaviour>]>([
    ["by a closed connection", {}],
    ["by a reset connection", { cutWith: "reset" }],
    ["short of its length", { framing: "length" }],
  ])("gives no image and throws when it is cut %s", async ([, how]) => {
    upstream.next(drawn({ imageBytes: 200_000, cutAfterBytes: 150_000, partials: 0, ...how }));
    const answer = await generate(call);
    const { outputs, error } = await read(answer);
    expect(outputs).toEqual([]);
    expect(error).toMatchObject({ name: "ProviderError", kind: "network" });
    expect(answer.report()?.tokens).toBeUndefined();
  });

  test("is ended at the upstream by return(), while a read waits and unread", async () => {
    upstream.next(drawn({ imageBytes: 200_000, stallAfterBytes: 5_000 }), drawn({ stallAfterBytes: 100 }));
    const outputs = (await generate(call)).output[Symbol.asyncIterator]();
    const waiting = outputs.next();
    await vi.waitFor(() => expect(upstream.requests[0]?.sentBytes).toBe(5_000));
    const left = outputs.return?.();
    expect(await upstream.requests[0]?.ended).toBe("closed_by_client");
    expect((await waiting).done).toBe(true);
    expect((await left)?.done).toBe(true);

    await (await generate(call)).output[Symbol.asyncIterator]().return?.();
    expect(await upstream.requests[1]?.ended).toBe("closed_by_client");
  });

  test("ends with its signal: waiting for headers, amid the answer", async () => {
    upstream.next(drawn({ beforeHeaders: never }), drawn({ stallAfterBytes: 500 }));
    const early = new AbortController();
    const answer = generate(call, early.signal);
    const request = await upstream.received(1);
    early.abort(new ProviderError("timeout", "no first output in time"));
    await expect(answer).rejects.toThrow("no first output in time");
    expect(await request.ended).toBe("closed_by_client");

    const late = new AbortController();
    const reading = read(await generate(call, late.signal));
    late.abort();
    expect((await reading).error).toMatchObject({ kind: "timeout" });
    expect(await upstream.requests[1]?.ended).toBe("closed_by_client");
  });

  test.for([
    ["a page", plain("text/html; charset=utf-8", "<html></html>")],
    ["an image", plain("image/png", "x")],
    ["an address", drawn({ content: "url", partials: 0 })],
    ["an image left out", drawn({ content: "nothing", partials: 0 })],
    ["what is no base64", drawn({ content: "noise", partials: 0 })],
    ["a text in base64", drawn({ content: "text", partials: 0 })],
    ["JSON that is none", plain("application/json", '{"data":')],
    ["JSON without images", plain("application/json", '{"created":1}')],
    ["JSON with no images", plain("application/json", '{"data":[]}')],
    ["another JSON", plain("application/json", "[7,null]")],
    ["nothing", plain("application/json", "")],
    ["another success", plain("application/json", "{}", 202)],
    ["a redirect", plain("application/json", "{}", 307)],
    ["an event that is no JSON", plain("text/event-stream", "data: {\n\n")],
    ["an event that is no object", plain("text/event-stream", "data: 7\n\n")],
  ])("does not take %s for an image", async ([, behaviour]) => {
    upstream.next(behaviour as ImageBehaviour);
    expect(await failure(call)).toMatchObject({ name: "ProviderError", kind: "bad_answer" });
    expect(upstream.requests).toHaveLength(1);
  });

  test("ends an answer that it does not take, and one that is too long", async () => {
    upstream.next(drawn({ contentType: "text/html", stallAfterBytes: 500 }));
    expect(await failure(call)).toMatchObject({ kind: "bad_answer" });
    expect(await upstream.requests[0]?.ended).toBe("closed_by_client");

    upstream.next(drawn({ imageBytes: 2 * mebibyte, stallAfterBytes: 2 * mebibyte, partials: 0 }));
    const error = await failure({ ...call, settings: { max_response_mib: 1 } });
    expect(error).toMatchObject({ kind: "bad_answer", cause: { kind: "too_large" } });
    expect(await upstream.requests[1]?.ended).toBe("closed_by_client");
  });

  test.for([
    [400, "moderation_blocked", "content_policy"],
    [400, null, "invalid_request"],
    [401, "invalid_api_key", "credentials"],
    [403, null, "credentials"],
    [429, "rate_limit_exceeded", "overloaded"],
    [429, "insufficient_quota", "credentials"],
    [500, null, "upstream"],
  ] as const)("says what %i %s means, and neither key nor prompt", async ([status, code, kind]) => {
    const message = `${apiKey} may not draw: ${call.prompt}`;
    const type = "image_generation_user_error";
    upstream.next({ kind: "error", status, code, type, message, headers: { "retry-after": "2" } });
    const error = await failure(call);
    expect(error).toMatchObject({ name: "ProviderError", kind, status, retryAfterMs: 2_000 });
    const { message: publicMessage, cause } = error as Error;
    expect(`${publicMessage} ${cause}`).toContain("[removed] may not draw: [removed]");
    expect(publicMessage).toBe(`The upstream answered with status ${status}.`);
  });
});

describe("images as JSON", () => {
  test("come in their order with their tokens, fewer too, and never more than asked", async () => {
    const answer = await generate({ ...jsonCall, n: 3 });
    expect(answer.report()?.tokens).toBeUndefined();
    const { outputs } = await read(answer);
    const images = await Promise.all([0, 1, 2].map((index) => expected(index)));
    expect(outputs.map((output, index) => isImage(output, "image", images[index] ?? Buffer.of()))).toEqual([
      true,
      true,
      true,
    ]);
    const completion = 3 * 1056;
    expect(answer.report()?.tokens).toEqual({
      prompt: 10,
      completion,
      imageCompletion: completion,
      imagePrompt: 0,
      cachedPrompt: 0,
    });

    for (const count of [2, 5]) {
      upstream.next(drawn({ count }));
      expect(await outputsOf({ ...jsonCall, n: 3 })).toHaveLength(Math.min(count, 3));
    }
  });

  test("are taken where some are left out", async () => {
    const png = (await expected(0)).toString("base64");
    const data = `[{"revised_prompt":"x"},{"b64_json":"${png.replaceAll("/", "\\/")}"},{"b64_json":null}]`;
    upstream.next(plain("application/json; charset=utf-8", `{"data":${data}}`));
    const answer = await generate({ ...jsonCall, n: 3 });
    expect((await read(answer)).outputs).toHaveLength(1);
    expect(answer.report()?.tokens).toBeUndefined();
  });

  test("are distinguished from an error that came as a success", async () => {
    upstream.next(plain("application/json", '{"error":{"code":"moderation_blocked","message":"No."}}'));
    expect(await failure(jsonCall)).toMatchObject({
      kind: "content_policy",
      cause: "moderation_blocked: No.",
    });
  });

  test("are asked for in the older parameters where the endpoint says so", async () => {
    const settings = { response_format: "b64_json" };
    const error = await failure({ ...jsonCall, format: "jpeg", compression: 10, seed: 7, settings });
    // The vendor's models of today refuse it.
    expect(error).toMatchObject({ kind: "invalid_request" });
    expect(upstream.requests[0]?.json).toEqual({
      model: "gpt-image-2",
      prompt: jsonCall.prompt,
      n: 1,
      seed: 7,
      response_format: "b64_json",
    });
  });

  test("reports the tokens of references and texts apart", async () => {
    const references: ReferenceImage[] = [{ bytes: await expected(0), mediaType: "image/png" }];
    const usage = {
      input_tokens: 310,
      input_tokens_details: { text_tokens: 10, image_tokens: 300 },
      output_tokens: 1100,
      output_tokens_details: { text_tokens: 44, image_tokens: 1056 },
      total_tokens: 1410,
    };
    upstream.next(drawn({ usage }));
    const answer = await generate({ ...jsonCall, references });
    await read(answer);
    expect(answer.report()?.tokens).toEqual({
      prompt: 310,
      completion: 1100,
      imagePrompt: 300,
      imageCompletion: 1056,
      cachedPrompt: 0,
    });
  });
});

describe("images as events", () => {
  test("come with previews, each before the upstream sends the next", async () => {
    const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    upstream.next(drawn({ beforeEvent: (index) => gates[index]?.promise }));
    const answer = await generate(eventCall);
    const outputs = answer.output[Symbol.asyncIterator]();
    for (const [index, gate] of gates.entries()) {
      gate.resolve();
      const { value } = await outputs.next();
      const kind = index < 2 ? "partial" : "image";
      expect(isImage(value, kind, await expected(index - 2))).toBe(true);
      if (kind === "partial") expect(value).toMatchObject({ index, mediaType: "image/png" });
    }
    expect((await outputs.next()).done).toBe(true);
    expect(answer.report()?.tokens).toMatchObject({ prompt: 10, completion: 1056, imageCompletion: 1056 });
    expect(upstream.requests[0]?.fate).toBe("finished");
  });

  test("are as many previews as an allowed option asks for", async () => {
    const outputs = await outputsOf({ ...eventCall, options: { partial_images: 3 } });
    expect(outputs.map(({ kind }) => kind)).toEqual(["partial", "partial", "partial", "image"]);
  });

  test("are as many previews as the call wants, none also, in place of that option", async () => {
    for (const partialImages of [0, 1, 3]) {
      const outputs = await outputsOf({ ...eventCall, partialImages, options: { partial_images: 2 } });
      expect(outputs.map(({ kind }) => kind)).toEqual([...Array(partialImages).fill("partial"), "image"]);
      expect(upstream.requests.at(-1)?.json).toMatchObject({ stream: true, partial_images: partialImages });
    }
  });

  test("end with the image: what comes after it is dropped", async () => {
    upstream.next(drawn({ partials: 1, latePartials: 2 }));
    expect((await outputsOf(eventCall)).map(({ kind }) => kind)).toEqual(["partial", "image"]);
    expect(upstream.requests[0]?.fate).toBe("finished");
  });

  test("leave the connection for the next request, unless its end stays away", async () => {
    for (const _ of [1, 2, 3]) {
      const gate = Promise.withResolvers<void>();
      upstream.next(drawn({ partials: 0, beforeEnd: () => gate.promise }));
      const outputs = (await generate(eventCall)).output[Symbol.asyncIterator]();
      expect((await outputs.next()).value?.kind).toBe("image");
      const end = outputs.next();
      gate.resolve();
      expect((await end).done).toBe(true);
    }
    expect(new Set(upstream.requests.map(({ connection }) => connection)).size).toBeLessThan(3);
    upstream.next(drawn({ beforeEnd: never }));
    expect(await outputsOf(eventCall)).toHaveLength(3);
    expect(await upstream.requests[3]?.ended).toBe("closed_by_client");
  });

  test("are not asked for with several images, which come as JSON", async () => {
    const outputs = await outputsOf({ ...eventCall, n: 2 });
    expect(outputs.map(({ kind }) => kind)).toEqual(["image", "image"]);
    expect(upstream.requests[0]?.json).not.toHaveProperty("stream");
  });

  test("may come as JSON all the same, and several where the upstream sends them", async () => {
    const png = (await expected(0)).toString("base64");
    const event = `data: {"type":"image_generation.completed","b64_json":"${png}"}\n\n`;
    upstream.next(plain("application/json", `{"data":[{"b64_json":"${png}"}]}`));
    expect(await outputsOf(eventCall)).toHaveLength(1);
    upstream.next(
      plain("text/event-stream", `: hi\n\ndata: {"type":"ping"}\n\n${event.repeat(3)}data: [DONE]\n\n`),
    );
    expect(await outputsOf({ ...eventCall, n: 2 })).toHaveLength(2);
    upstream.next(plain("text/event-stream", `${event}data: [DONE]\n\n`));
    expect(await outputsOf({ ...eventCall, n: 2 })).toHaveLength(1);
  });

  test.for<[string, Partial<DrawBehaviour>, string, string | undefined]>([
    ["an error", { errorAtEvent: 1 }, "upstream", "image_generation_server_error: It broke."],
    ["no image", { omitCompleted: true, partials: 1 }, "network", undefined],
  ])("give what came and throw on %s", async ([, how, kind, cause]) => {
    upstream.next(drawn(how));
    const { outputs, error } = await read(await generate(eventCall));
    expect(outputs.map((output) => output.kind)).toEqual(["partial"]);
    expect(error).toMatchObject({ name: "ProviderError", kind, ...(cause !== undefined && { cause }) });
  });

  test("keep to the pace of their reader", async () => {
    upstream.next(drawn({ partials: 24, imageBytes: 3 * mebibyte }));
    const outputs = (await generate({ ...eventCall, settings: { max_response_mib: 128 } })).output[
      Symbol.asyncIterator
    ]();
    await outputs.next();
    let last = -1;
    await vi.waitFor(
      () => {
        const before = last;
        last = upstream.requests[0]?.sentBytes ?? 0;
        expect(last).toBe(before);
      },
      { interval: 300, timeout: 10_000 },
    );
    // What has gone lies in the kernel's socket buffers; read without back-pressure it would be all.
    expect(last).toBeLessThan(40 * mebibyte);
    let count = 1;
    while (!(await outputs.next()).done) count += 1;
    expect(count).toBe(25);
  });

  test("are given up when one has no end", async () => {
    upstream.next(plain("text/event-stream", `data: ${"x".repeat(41 * mebibyte)}`));
    expect(await failure(eventCall)).toMatchObject({
      kind: "bad_answer",
      cause: { name: "OversizedEventError" },
    });
  });
});
