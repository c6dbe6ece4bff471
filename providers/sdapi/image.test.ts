import sharp from "sharp";
import { afterEach, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { drawingAt, imageCall } from "../../test/support/drawing.ts";
import {
  type SdapiBehaviour,
  type SdapiUpstream,
  type SdapiUpstreamOptions,
  startSdapiUpstream,
} from "../../test/upstreams/sdapi.ts";
import type { ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { createSdapiAdapter } from "./image.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

async function serve(options: SdapiUpstreamOptions = {}) {
  const upstream = await startSdapiUpstream(options);
  const http = createOutboundHttp();
  const adapter = createSdapiAdapter({ http, previewPauseMs: 1 });
  const connection = { baseUrl: upstream.baseUrl, apiKey: options.auth ?? "" };
  opened.push(upstream, http);
  return { upstream, ...drawingAt(adapter, connection) };
}

interface Setup extends ImageProviderSetup {
  readonly upstream: SdapiUpstream;
}

const auth = "ann:the-right-one";
const prompt = "A picture nobody else may know of.";

function setUp(isExclusive: boolean): () => Promise<Setup> {
  return async () => {
    const upstream = await startSdapiUpstream({ auth });
    const http = createOutboundHttp();
    const call = imageCall({ prompt, settings: { exclusive: isExclusive } });
    const open = () => upstream.requests.filter(({ fate }) => fate === "open").length;
    return {
      upstream,
      adapter: createSdapiAdapter({ http, previewPauseMs: 1 }),
      connection: { baseUrl: upstream.baseUrl, apiKey: auth },
      call,
      severalCall: { ...call, n: 3 },
      ...(isExclusive && { streamCall: { ...call, prompt: `${prompt} [[previews=3]]`, stream: true } }),
      deterministic: true,
      // Where it is not ours alone, what it draws goes on: all that can be ended is the request.
      running: () =>
        (isExclusive ? upstream.jobs.filter(({ state }) => state === "running").length : 0) + open(),
      close: async () => {
        await http.close();
        await upstream.close();
      },
    };
  };
}

function failure(
  name: string,
  kind: ProviderErrorKind,
  status: number,
  behaviour: SdapiBehaviour,
): ImageFailure<Setup> {
  return {
    name,
    kind,
    status,
    provoke({ upstream }) {
      upstream.next(behaviour);
      return undefined;
    },
  };
}

const failures: readonly ImageFailure<Setup>[] = [
  failure("a broken server", "upstream", 500, {
    error: {
      status: 500,
      body: JSON.stringify({ error: "RuntimeError", detail: "", errors: `${auth} ${prompt}` }),
    },
  }),
  failure("an answer without images", "bad_answer", 200, { images: [] }),
  failure("an image that is none", "bad_answer", 200, { images: ["aGVsbG8="] }),
  {
    name: "a wrong password",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "ann:wrong" } }),
  },
];

describeImageProvider("sdapi, exclusive,", setUp(true), failures);
describeImageProvider("sdapi, among others,", setUp(false), failures);

describe("a call", () => {
  test("is asked for in the server's words, with the operator's own fields, whatever callers pass", async () => {
    const { upstream, draw } = await serve();
    const settings = {
      parameters: { steps: 20, sampler_name: "Euler a", negative_prompt: "blurry", n_iter: 4, batch_size: 9 },
      quality: { high: { steps: 40 } },
    };
    const evil = {
      ...{
        prompt: "another",
        width: 4096,
        steps: 150,
        n_iter: 10,
        batch_size: 10,
        enable_hr: true,
        script_name: "x",
      },
      ...{
        override_settings: { sd_model_checkpoint: "other" },
        alwayson_scripts: {},
        init_images: ["x"],
        url: "http://a",
      },
    };
    const options = { ...evil, cfg_scale: 7.5, negative_prompt: "ugly <lora:x:1>", scheduler: { a: 1 } };
    await draw(imageCall({ n: 2, seed: -1, quality: "high", settings, options }));
    expect(upstream.requests[0]).toMatchObject({ method: "POST", path: "/sdapi/v1/txt2img" });
    expect(upstream.requests[0]?.headers.authorization).toBeUndefined();
    expect(upstream.requests[0]?.json).toEqual({
      ...{ prompt: "A boat.", negative_prompt: "ugly  lora:x:1 ", width: 64, height: 96, seed: 2 ** 32 - 1 },
      ...{ steps: 40, sampler_name: "Euler a", cfg_scale: 7.5, batch_size: 2, n_iter: 1 },
      override_settings: { sd_model_checkpoint: "sd_xl_base_1.0" },
      override_settings_restore_afterwards: true,
      force_task_id: expect.stringMatching(/^task\(.{36}\)$/),
      ...{ send_images: true, save_images: false },
    });
  });

  test("leaves the choice of checkpoint, size and seed to the server where nothing says", async () => {
    const { upstream, draw } = await serve();
    await draw(imageCall({ size: undefined, settings: { loaded_model: true } }));
    const asked = upstream.requests[0]?.json as Record<string, unknown>;
    expect(asked.seed).toBe(-1);
    for (const name of ["width", "height", "override_settings"]) expect(asked).not.toHaveProperty(name);
  });

  test("starts from references; only the first decides how many come out", async () => {
    const { upstream, draw } = await serve();
    const reference = (shade: number) => ({ bytes: Buffer.of(shade), mediaType: "image/png" }) as const;
    await draw(imageCall({ references: [reference(1), reference(2)] }));
    expect(upstream.requests[0]).toMatchObject({
      path: "/sdapi/v1/img2img",
      json: { init_images: ["AQ=="], extra_images: ["Ag=="] },
    });
  });

  test.each([
    ["<lora:giant:1>", "webui"],
    ["a <hypernet:old:0.5> boat", "webui"],
    ["<<lora:a:1>lora:giant:1>", "webui"],
    ["<lyco:a:1:2>", "webui"],
    ['<sd_cpp_extra_args>{"width":4096,"sample_params":{"sample_steps":500}}</sd_cpp_extra_args>', "sd.cpp"],
    ['<sd_cpp_<lora:a:1>extra_args>{"batch_count":99}</sd_cpp_<lora:a:1>extra_args>', "sd.cpp"],
    ["a boat AND a sea AND\na sky", "webui"],
  ] as const)("has no parameters in its prompt: %s", async (text, server) => {
    const raw = await startSdapiUpstream({ server });
    opened.push(raw);
    const read = { networks: [], extraArguments: undefined, parts: 1 };
    const body = JSON.stringify({ prompt: text });
    await fetch(`${raw.baseUrl}/sdapi/v1/txt2img`, { method: "POST", body });
    // The stand-in does read tags; one that would only come of taking out another is for the gateway's own mistakes.
    if (!text.startsWith("<sd_cpp_<")) expect(raw.jobs).not.toMatchObject([read]);
    const { upstream, draw } = await serve({ server });
    await draw(imageCall({ prompt: text, options: { negative_prompt: text } }));
    expect(upstream.jobs).toMatchObject([read]);
    const words = (phrase: unknown) => String(phrase).toLowerCase().match(/\w+/g);
    expect(words(upstream.jobs[0]?.fields.prompt)).toEqual(words(text));
  });

  test("comes out without what the server wrote into the image", async () => {
    const { upstream, draw } = await serve();
    const canvas = { create: { width: 8, height: 8, channels: 3, background: "#123456" } } as const;
    const secret = "steps: 20, Model: private-model";
    const told = await sharp(canvas)
      .withExif({ IFD0: { ImageDescription: secret } })
      .png()
      .toBuffer();
    expect(told.includes(secret)).toBe(true);
    upstream.next({ images: [`data:image/png;base64,${told.toString("base64")}`] });
    const [image] = await draw(imageCall());
    const { bytes } = image as { bytes: Uint8Array };
    expect(Buffer.from(bytes).includes(secret)).toBe(false);
    const pixels = (png: Uint8Array) => sharp(png).raw().toBuffer();
    expect((await pixels(bytes)).equals(await pixels(told))).toBe(true);
  });

  test("gives no previews and sends no interrupt where the server is not ours alone", async () => {
    const { upstream, begin, draw } = await serve();
    expect(await draw(imageCall({ stream: true, prompt: "[[previews=2]]" }))).toMatchObject([
      { kind: "image" },
    ]);
    const controller = new AbortController();
    const { promise: until, resolve: end } = Promise.withResolvers<void>();
    upstream.next({ until });
    const left = begin(imageCall(), { signal: controller.signal }).catch((error: unknown) => error);
    const request = await upstream.received(2);
    controller.abort();
    expect(await left).toMatchObject({ kind: "timeout" });
    expect(await request.ended).toBe("closed_by_client");
    end();
    expect(upstream.requests.map(({ path }) => path)).toEqual(Array(2).fill("/sdapi/v1/txt2img"));
  });
});

describe("a failure", () => {
  const page = (status: number, body: unknown) => ({
    status,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  test.each<[ReturnType<typeof page>, ProviderErrorKind]>([
    [page(401, { detail: "Incorrect username or password" }), "credentials"],
    [page(404, { detail: "Not Found" }), "upstream"],
    [page(404, { error: "HTTPException", detail: "Model not found", body: "", errors: "" }), "upstream"],
    [page(404, { error: "HTTPException", detail: "Sampler not found", body: "", errors: "" }), "upstream"],
    [
      page(422, { detail: [{ loc: ["body", "width"], msg: "value is not a valid integer" }] }),
      "invalid_request",
    ],
    [
      page(500, { error: "OutOfMemoryError", detail: "", body: "", errors: "CUDA out of memory." }),
      "overloaded",
    ],
    [page(500, { error: "AttributeError", detail: "", body: "", errors: "'NoneType' object" }), "upstream"],
    [page(400, { error: "invalid params" }), "invalid_request"],
    [page(500, { error: "server_error", message: "generate_image returned no results" }), "upstream"],
    [page(502, "<h1>Bad gateway</h1>"), "upstream"],
    [page(503, "<h1>Starting</h1>"), "overloaded"],
  ])("of the server is one of ours: %o", async (error, kind) => {
    const { upstream, failureOf } = await serve();
    upstream.next({ error });
    const failed = await failureOf(imageCall());
    expect([failed.kind, failed.status]).toEqual([kind, error.status]);
    expect(failed.message).not.toMatch(/width|memory|gateway|Model|Sampler|NoneType/);
  });

  test("that cuts the answer, wherever, never leaves an image that looks whole", async () => {
    const { upstream, failureOf } = await serve();
    await fetch(`${upstream.baseUrl}/sdapi/v1/txt2img`, { method: "POST", body: '{"width":8,"height":8}' });
    const whole = JSON.stringify({ images: ["AAAA"], parameters: { prompt: "A boat." } }).length;
    for (let cutAfterBytes = 0; cutAfterBytes < whole; cutAfterBytes += 1) {
      upstream.next({ cutAfterBytes, images: ["AAAA"] });
      expect((await failureOf(imageCall())).kind, String(cutAfterBytes)).toBe("network");
    }
  });
});
