import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type CatalogFolder, catalogFolder, exampleAt } from "../support/processes/example-catalog.ts";
import { bytesOf, speak, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { imageOf, speechOf, startCompatibleServer } from "../upstreams/compatible/compatible.ts";
import { compatibleServers } from "../upstreams/compatible/compatible-servers.ts";
import type { StandIn } from "../upstreams/stand-in/stand-in-server.ts";

type Example = keyof typeof compatibleServers;

/** The examples that leave their prices to the operator get them where an operator puts them. */
const prices = `prices:
  - provider: inworld
    model: inworld/tts-2
    prices: [{ billable: input_character, usd_per_million: "35" }]
  - provider: together
    model: hexgrad/kokoro
    prices: [{ billable: input_character, usd_per_million: "4" }]
`;
const input = "Nine ways to say this.";

const upstreams = new Map<Example, StandIn>();
let folder: CatalogFolder;
let stack: TestStandalone;

beforeAll(async () => {
  const files: Record<string, string> = { "prices.yaml": prices };
  for (const [slug, server] of Object.entries(compatibleServers) as [Example, never][]) {
    const upstream = await startCompatibleServer(server);
    upstreams.set(slug, upstream);
    files[`${slug}.yaml`] = await exampleAt(slug, upstream.baseUrl);
  }
  folder = await catalogFolder(files);
  // The self-hosted ones get no key.
  const keyed = ["GROQ", "INWORLD", "TOGETHER", "AZURE_OPENAI", "OPENROUTER"];
  stack = await startTestStandalone({
    CATALOG_DIR: folder.path,
    BOOTSTRAP_CREDIT_USD: "10",
    ...Object.fromEntries(keyed.map((name) => [`${name}_API_KEY`, "test-key"])),
  });
}, 120_000);

afterAll(async () => {
  await stack.close();
  for (const upstream of upstreams.values()) await upstream.close();
  await folder.remove();
});

/** What a provider's stand-in got for a path, newest last. */
function received(slug: Example, path: string) {
  return upstreams.get(slug)?.requests.filter((request) => request.path.startsWith(path)) ?? [];
}

function ask(path: string, body?: object, key = stack.inferenceKey): Promise<Response> {
  return fetch(`${stack.baseUrl}/api/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** The record of a generation, once it is there. */
async function recordOf(response: Response): Promise<{ provider_name: string; total_cost: number }> {
  const id = response.headers.get("x-generation-id");
  return await vi.waitFor(
    async () => {
      const record = await ask(`/generation?id=${id}`);
      expect(record.status).toBe(200);
      return ((await record.json()) as { data: { provider_name: string; total_cost: number } }).data;
    },
    { timeout: 20_000, interval: 100 },
  );
}

describe("speech by an example", () => {
  const characters = input.length;
  test.for<[Example, string, "mp3" | "pcm", number, Buffer, number]>([
    ["kokoro-fastapi", "hexgrad/kokoro", "mp3", 24_000, speechOf.mp3, 0],
    ["kokoro-fastapi", "hexgrad/kokoro", "pcm", 24_000, speechOf.pcm, 0],
    ["speaches", "hexgrad/kokoro", "pcm", 24_000, speechOf.pcm, 0],
    ["speaches", "rhasspy/piper-amy", "pcm", 22_050, speechOf.pcm, 0],
    ["vllm-omni", "qwen/qwen3-tts-customvoice", "pcm", 24_000, speechOf.pcm, 0],
    ["localai", "localai/speech", "pcm", 22_050, speechOf.pcm, 0],
    ["groq", "canopylabs/orpheus-v1-english", "pcm", 24_000, speechOf.pcm, (characters * 22) / 1e6],
    ["inworld", "inworld/tts-2", "mp3", 24_000, speechOf.mp3, (characters * 35) / 1e6],
    ["together", "hexgrad/kokoro", "pcm", 24_000, speechOf.pcm, (characters * 4) / 1e6],
    ["azure-openai", "openai/tts-1", "mp3", 24_000, speechOf.mp3, (characters * 15) / 1e6],
  ])("%s speaks %s as %s", async ([slug, model, response_format, rate, bytes, costUsd]) => {
    const response = await speak(stack, stack.inferenceKey, {
      model,
      input,
      response_format,
      provider: { only: [slug] },
    });
    expect(response.status).toBe(200);
    if (response_format === "pcm") expect(response.headers.get("x-audio-sample-rate")).toBe(String(rate));
    expect((await bytesOf(response)).equals(bytes)).toBe(true);
    const record = await recordOf(response);
    expect(record.total_cost).toBeCloseTo(costUsd, 9);
  });

  test("wav and samples become mp3 where that is wanted", async () => {
    for (const [slug, model] of [
      ["groq", "canopylabs/orpheus-v1-english"],
      ["together", "hexgrad/kokoro"],
    ]) {
      const response = await speak(stack, stack.inferenceKey, { model, input, provider: { only: [slug] } });
      expect(response.headers.get("content-type")).toBe("audio/mpeg");
      expect((await bytesOf(response)).subarray(0, 1)).toEqual(Buffer.of(0xff));
    }
  });

  test("a server without a key is sent no Authorization; one with a header of its own has the key there", async () => {
    await speak(stack, stack.inferenceKey, {
      model: "hexgrad/kokoro",
      input,
      provider: { only: ["kokoro-fastapi"] },
    }).then(bytesOf);
    for (const slug of ["kokoro-fastapi", "speaches", "localai", "vllm-omni"] as const) {
      const requests = upstreams.get(slug)?.requests ?? [];
      expect(requests.length, slug).toBeGreaterThan(0);
      for (const { headers } of requests) expect(headers, slug).not.toHaveProperty("authorization");
    }
    const [azure] = received("azure-openai", "/openai/deployments/tts-1/audio/speech");
    expect(azure?.headers).toMatchObject({ "api-key": "test-key" });
    expect(azure?.headers).not.toHaveProperty("authorization");
    expect(azure?.path).toBe("/openai/deployments/tts-1/audio/speech?api-version=2025-04-01-preview");
  });

  test("fixed fields go along, what the caller passes through stands above them", async () => {
    const sent = () => received("vllm-omni", "/v1/audio/speech").at(-1)?.json;
    const say = (more: object) =>
      speak(stack, stack.inferenceKey, { model: "qwen/qwen3-tts-customvoice", input, ...more }).then(bytesOf);
    await say({ instructions: "Softly.", provider: { options: { "vllm-omni": { language: "French" } } } });
    expect(sent()).toEqual({
      model: "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice",
      input,
      response_format: "pcm",
      stream: true,
      stream_format: "audio",
      instructions: "Softly.",
      language: "French",
    });
    await say({ voice: "ryan", provider: { options: { "vllm-omni": { stream: false, model: "x" } } } });
    expect(sent()).toMatchObject({
      voice: "ryan",
      stream: true,
      model: "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice",
    });
  });
});

describe("voices", () => {
  test("are those that the server lists, by whatever shape, and others are refused", async () => {
    const voicesOf = async (model: string) => {
      const { voices } = (await (await ask("/audio/voices")).json()) as {
        voices: { id: string; model: string }[];
      };
      return voices.filter((voice) => voice.model === model).map(({ id }) => id);
    };
    await vi.waitFor(async () => {
      expect(await voicesOf("hexgrad/kokoro")).toEqual(["af_heart", "af_alloy", "am_echo", "bm_fable"]);
      expect(await voicesOf("qwen/qwen3-tts-customvoice")).toEqual(["vivian", "ryan"]);
    });
    const say = (voice: string, slug: string) =>
      speak(stack, stack.inferenceKey, {
        model: "hexgrad/kokoro",
        voice,
        input,
        provider: { only: [slug] },
      });
    expect((await say("bm_fable", "together")).status).toBe(200);
    // Until its list has come, a server is passed on any voice.
    await vi.waitFor(async () => expect((await say("friendly sidekick", "together")).status).toBe(400));
    // By its other name at one server, which the others do not know.
    expect((await say("alloy", "kokoro-fastapi")).status).toBe(200);
    expect(received("kokoro-fastapi", "/v1/audio/speech").at(-1)?.json).toMatchObject({ voice: "af_alloy" });
    expect((await say("alloy", "together")).status).toBe(400);
  });

  test("are free where a server lists none", async () => {
    const body = { model: "localai/speech", input, voice: "whoever" };
    expect((await speak(stack, stack.inferenceKey, body)).status).toBe(200);
    expect(received("localai", "/v1/audio/speech").at(-1)?.json).toMatchObject({ voice: "whoever" });
  });
});

interface ImagesAnswer {
  readonly data: readonly { b64_json: string }[];
  readonly usage: { readonly cost: number };
}

describe("images by an example", () => {
  const prompt = "A lighthouse.";
  const reference = async () => {
    const url = `data:image/png;base64,${(await imageOf("64x64")).toString("base64")}`;
    return [{ type: "image_url", image_url: { url } }];
  };

  test("at an address of the server itself are fetched", async () => {
    const response = await ask("/images", { model: "localai/images", prompt, size: "512x512" });
    expect(response.status).toBe(200);
    const { data, usage } = (await response.json()) as ImagesAnswer;
    expect(Buffer.from(data[0]?.b64_json ?? "", "base64").equals(await imageOf("512x512"))).toBe(true);
    expect(usage.cost).toBe(0);
  });

  test("in base64 come as many as were asked for, an edit goes as a form", async () => {
    const draw = async (more: object) => {
      const response = await ask("/images", { model: "qwen/qwen-image", prompt, size: "1024x1024", ...more });
      expect(response.status).toBe(200);
      return ((await response.json()) as ImagesAnswer).data.length;
    };
    expect(await draw({ n: 2 })).toBe(2);
    expect(await draw({ input_references: await reference() })).toBe(1);
    const edit = received("vllm-omni", "/v1/images/edits").at(-1);
    expect(edit?.headers["content-type"]).toMatch(/^multipart\/form-data/);
  });

  test("are charged what the upstream says they cost, references go as members of the body", async () => {
    const response = await ask("/images", {
      model: "google/gemini-2.5-flash-image",
      prompt,
      aspect_ratio: "16:9",
      input_references: await reference(),
    });
    expect(response.status).toBe(200);
    expect(((await response.json()) as ImagesAnswer).usage.cost).toBe(0.0387);
    const sent = received("openrouter", "/api/v1/images").at(-1);
    expect(sent?.headers).toMatchObject({ authorization: "Bearer test-key", "x-title": "Media Gateway" });
    expect(sent?.json).toMatchObject({ aspect_ratio: "16:9", resolution: "1K", input_references: [{}] });
    expect(sent?.json).not.toHaveProperty("size");
  });

  test("come with previews, and the cost with the last event", async () => {
    const response = await ask("/images", {
      model: "openai/gpt-image-1.5",
      prompt,
      stream: true,
      provider: { only: ["openrouter"] },
    });
    const events = (await response.text())
      .split("\n\n")
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice(6)) as { type: string; usage?: { cost: number } });
    expect(events.map(({ type }) => type)).toEqual([
      "image_generation.partial_image",
      "image_generation.completed",
    ]);
    expect(events.at(-1)?.usage?.cost).toBe(0.0387);
  });
});

test("an account brings its own key to a configured provider that needs one, and to no other", async () => {
  const bring = (provider: string) =>
    ask("/byok", { provider, key: "gsk-of-an-account" }, stack.managementKey);
  expect((await bring("kokoro-fastapi")).status).toBe(400);
  expect((await bring("nobody")).status).toBe(400);
  expect((await bring("inworld")).status).toBe(201);
});
