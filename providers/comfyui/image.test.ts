import sharp from "sharp";
import { afterEach, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { openWebSocket } from "../../lib/http/outbound-web-socket.ts";
import { drawingAt, imageCall } from "../../test/support/drawing.ts";
import { readExample } from "../../test/support/own-gpu.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import {
  type ComfyuiAnswer,
  type ComfyuiBehaviour,
  type ComfyuiUpstream,
  type ComfyuiUpstreamOptions,
  startComfyuiUpstream,
} from "../../test/upstreams/comfyui.ts";
import { createImageSource } from "../../test/upstreams/stand-in/image-source.ts";
import type { ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { createComfyuiAdapter } from "./image.ts";

const example = async (name: string): Promise<unknown> => JSON.parse(await readExample("comfyui", name));

const places = { prompt: "6.inputs.text", model: "4.inputs.ckpt_name", seed: "3.inputs.seed" };
const settings = {
  workflow: await example("text-to-image.json"),
  inputs: { ...places, width: "5.inputs.width", height: "5.inputs.height", n: "5.inputs.batch_size" },
  quality: { high: { "3.inputs.steps": 35 } },
  options: { negative_prompt: "7.inputs.text", cfg: "3.inputs.cfg" },
  edit: { workflow: await example("image-to-image.json"), inputs: { ...places, image: ["10.inputs.image"] } },
};
const auth = "ann:the-right-one";
const prompt = "A picture nobody else may know of.";
const call = imageCall({ upstreamModel: "sd_xl_base_1.0.safetensors", prompt, settings });
const streamed = { ...call, prompt: `${prompt} [[previews=3]]`, stream: true };
const pace = { firstPauseMs: 5, mostPauseMs: 20 };

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

async function serve(options: ComfyuiUpstreamOptions = {}) {
  const upstream = await startComfyuiUpstream(options);
  const http = createOutboundHttp();
  const adapter = createComfyuiAdapter({ http, webSocket: openWebSocket, ...pace });
  opened.push(upstream, http);
  return { upstream, ...drawingAt(adapter, { baseUrl: upstream.baseUrl, apiKey: options.auth ?? "" }) };
}

interface Setup extends ImageProviderSetup {
  readonly upstream: ComfyuiUpstream;
}

async function setUp(): Promise<Setup> {
  const upstream = await startComfyuiUpstream({ auth });
  const http = createOutboundHttp();
  return {
    upstream,
    adapter: createComfyuiAdapter({ http, webSocket: openWebSocket, ...pace }),
    connection: { baseUrl: upstream.baseUrl, apiKey: auth },
    call,
    severalCall: { ...call, n: 3 },
    streamCall: streamed,
    running: () =>
      upstream.openSockets() +
      upstream.requests.filter(({ fate, path }) => fate === "open" && path !== "/queue").length,
    close: async () => {
      await http.close();
      await upstream.close();
    },
  };
}

function failing(name: string, kind: ProviderErrorKind, behaviour: ComfyuiBehaviour): ImageFailure<Setup> {
  return {
    name,
    kind,
    provoke({ upstream }) {
      upstream.next(behaviour);
      return undefined;
    },
  };
}

describeImageProvider("comfyui", setUp, [
  failing("a node that fails", "upstream", { error: { type: "RuntimeError", message: `${auth} ${prompt}` } }),
  failing("too little memory", "overloaded", {
    error: { type: "torch.OutOfMemoryError", message: "Tried to" },
  }),
  failing("an interrupt by somebody", "upstream", { isInterrupted: true }),
  {
    name: "a wrong password",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "ann:wrong" } }),
  },
  {
    name: "a wrong password where previews are wanted",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ call: streamed, connection: { ...connection, apiKey: "ann:wrong" } }),
  },
  {
    name: "a model that is not there",
    kind: "upstream",
    status: 400,
    provoke: () => ({ call: { ...call, upstreamModel: "none" } }),
  },
]);

describe("a graph", () => {
  const inputsOf = (upstream: ComfyuiUpstream, at = 0) =>
    Object.fromEntries(
      Object.entries(upstream.prompts[at]?.graph ?? {}).map(([id, { inputs }]) => [id, inputs] as const),
    );

  test.each([[["4", 0]], ["500"]])(
    "has the words of the call where the endpoint says, and nothing else of what callers pass: %j",
    async (cfg) => {
      const { upstream, draw } = await serve();
      const evil = {
        seed: 1,
        "3.inputs.steps": 500,
        workflow: {},
        inputs: {},
        cfg,
        text: "x",
        url: "http://a",
      };
      const options = { ...evil, negative_prompt: "ugly" };
      await draw({ ...call, quality: "high", n: 2, seed: -7, options });
      const graph = structuredClone(settings.workflow) as Record<string, { inputs: object }>;
      Object.assign(graph["3"]?.inputs ?? {}, { seed: 7, steps: 35 });
      Object.assign(graph["5"]?.inputs ?? {}, { width: 64, height: 96, batch_size: 2 });
      Object.assign(graph["6"]?.inputs ?? {}, { text: prompt });
      Object.assign(graph["7"]?.inputs ?? {}, { text: "ugly" });
      expect(upstream.prompts[0]?.graph).toEqual(graph);
    },
  );

  test("has a seed of its own for each call, and is drawn anew where a caller repeats one", async () => {
    const { upstream, draw } = await serve();
    const saving = structuredClone(settings.workflow) as Record<string, object>;
    saving["9"] = { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "gateway" } };
    for (const seed of [undefined, undefined, 5, 5]) {
      const again = { ...call, seed, settings: { ...settings, workflow: saving } };
      expect(await draw(again)).toMatchObject([{ kind: "image" }]);
    }
    const seeds = [0, 1, 2, 3].map((at) => inputsOf(upstream, at)["3"]?.seed);
    expect(new Set(seeds).size).toBe(3);
    expect(seeds.slice(2)).toEqual([5, 5]);
  });

  test("starts from uploaded references, which the server keeps for a while only", async () => {
    const { upstream, draw } = await serve();
    const spec = { format: "png", width: 32, height: 32, isTransparent: false, shade: 9 } as const;
    const bytes = await createImageSource().image(spec);
    expect(await draw({ ...call, references: [{ bytes, mediaType: "image/png" }] })).toHaveLength(1);
    const name = String(inputsOf(upstream)["10"]?.image);
    expect(name).toMatch(/^[0-9a-f-]{36}\.png \[temp\]$/);
    expect(upstream.files.get(name)?.equals(bytes)).toBe(true);
  });

  test("is not told to whoever gets the image", async () => {
    const { upstream, draw } = await serve();
    const [image] = await draw(call);
    const { bytes } = image as { bytes: Uint8Array };
    const stored = [...upstream.files.values()].at(-1);
    expect([stored?.includes("class_type"), Buffer.from(bytes).includes("class_type")]).toEqual([
      true,
      false,
    ]);
    expect(await sharp(bytes).metadata()).toMatchObject({ format: "png", width: 64, height: 96 });
  });
});

describe("previews", () => {
  test.each([false, true])(
    "are this call's own, each picture once; with metadata: %s",
    async (previewsWithMetadata) => {
      const { upstream, draw } = await serve({ previewsWithMetadata, takesIds: previewsWithMetadata });
      const { promise: until, resolve: end } = Promise.withResolvers<void>();
      upstream.next({ previews: 5, until });
      // Somebody without a client id: everybody who listens gets these previews.
      const body = JSON.stringify({ prompt: settings.workflow });
      const headers = { "content-type": "application/json" };
      await fetch(`${upstream.baseUrl}/prompt`, { method: "POST", headers, body });
      const drawn = draw(streamed);
      await waitUntil(() => upstream.prompts.length === 2);
      end();
      const outputs = await drawn;
      expect(outputs.at(-1)?.kind).toBe("image");
      const partials = outputs.flatMap((output) => (output.kind === "partial" ? [output] : []));
      const shades = await Promise.all(
        partials.map(async ({ bytes, mediaType }) => {
          expect(mediaType).toBe("image/jpeg");
          return Math.round((await sharp(bytes).stats()).channels[0]?.mean ?? 0);
        }),
      );
      expect(shades.length).toBeGreaterThan(0);
      expect(new Set(shades).size).toBe(shades.length);
      // The other one's went down to 251.
      expect(Math.min(...shades)).toBeGreaterThanOrEqual(253);
      expect(upstream.requests.filter(({ path }) => path.startsWith("/history")).length).toBeGreaterThan(0);
    },
  );

  test("are as many as were asked for; nobody listens for none", async () => {
    const { upstream, draw } = await serve();
    const kinds = (await draw({ ...streamed, partialImages: 1 })).map(({ kind }) => kind);
    expect(kinds).toEqual(["partial", "image"]);
    const { promise: until, resolve: end } = Promise.withResolvers<void>();
    upstream.next({ until });
    const silent = draw({ ...streamed, partialImages: 0 });
    await waitUntil(() => upstream.prompts[1]?.state === "running");
    expect(upstream.openSockets()).toBe(0);
    end();
    expect(await silent).toMatchObject([{ kind: "image" }]);
  });

  test("end with their websocket, and the image comes all the same", async () => {
    const { upstream, draw } = await serve();
    upstream.next({ cutsSocket: true });
    expect(await draw(streamed)).toMatchObject([{ kind: "image" }]);
  });
});

describe("who leaves", () => {
  test.each([true, false])(
    "has the prompt taken out of the queue, and nothing interrupted; streamed: %s",
    async (stream) => {
      const { upstream, begin, draw } = await serve({ takesIds: stream });
      const { promise: until, resolve: end } = Promise.withResolvers<void>();
      upstream.next({ until });
      const running = draw(call);
      await waitUntil(() => upstream.prompts[0]?.state === "running");
      const controller = new AbortController();
      const { output } = await begin({ ...call, stream }, { signal: controller.signal });
      const waiting = Array.fromAsync(output).catch((error: unknown) => error);
      controller.abort();
      expect(await waiting).toMatchObject({ kind: "timeout" });
      await waitUntil(() => upstream.prompts[1]?.state === "deleted");
      end();
      expect(await running).toMatchObject([{ kind: "image" }]);
      expect(upstream.requests.map(({ path }) => path)).not.toContain("/interrupt");
      expect(upstream.openSockets()).toBe(0);
    },
  );
});

describe("an answer", () => {
  const cuts = [
    ["to the prompt", /^POST \/prompt/, "/prompt", 1],
    ["of the history", /^GET \/history/, "/history", 67],
    ["with an image", /^GET \/view/, "/view", 29],
  ] as const;
  test.each(cuts)(
    "%s that is cut, wherever, never leaves an image that looks whole",
    async (_, path, at, step) => {
      const { upstream, draw, failureOf } = await serve();
      await draw(call);
      const whole = upstream.requests.findLast((request) => request.path.startsWith(at))?.sentBytes ?? 0;
      expect(whole).toBeGreaterThan(50);
      for (let cutAfterBytes = 0; cutAfterBytes < whole - 10; cutAfterBytes += step) {
        upstream.answer({ path, cutAfterBytes });
        expect((await failureOf(call)).kind, String(cutAfterBytes)).toBe("network");
      }
    },
  );

  test.each<[string, ComfyuiAnswer, ProviderErrorKind, number | undefined]>([
    ["nothing there", { path: /^POST \/prompt/, status: 404, body: "" }, "upstream", 404],
    ["a proxy's page", { path: /^POST \/prompt/, body: "<h1>Hello</h1>" }, "bad_answer", undefined],
    [
      "a proxy that waits for it",
      { path: /^POST \/prompt/, status: 502, body: "<h1>Bad</h1>" },
      "upstream",
      502,
    ],
    ["no id", { path: /^POST \/prompt/, body: "{}" }, "bad_answer", 200],
    ["a list for a history", { path: /^GET \/history/, body: "[]" }, "bad_answer", undefined],
    ["an image that is gone", { path: /^GET \/view/, status: 404, body: "" }, "upstream", 404],
    ["an image that is none", { path: /^GET \/view/, body: "GIF" }, "bad_answer", 200],
  ])("that is not one fails: %s", async (_, answer, kind, status) => {
    const { upstream, failureOf } = await serve();
    upstream.answer(answer);
    const failed = await failureOf(call);
    expect([failed.kind, failed.status]).toEqual([kind, status]);
  });

  test("without images is none", async () => {
    const { failureOf } = await serve();
    const elsewhere = { ...call, settings: { ...settings, output: "8" } };
    expect(await failureOf(elsewhere)).toMatchObject({ kind: "bad_answer" });
  });

  test("of a server that refuses a graph tells the log which node and why, without the prompt", async () => {
    const { failureOf } = await serve();
    const { cause, message } = await failureOf({ ...call, upstreamModel: prompt });
    expect(String(cause)).toContain("ckpt_name");
    expect([String(cause), message].join()).not.toContain(prompt);
  });
});
