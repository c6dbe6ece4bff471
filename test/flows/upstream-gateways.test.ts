/** Servers that nobody here wrote, and another instance of this one, as upstreams by configuration. */
import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Child, startChild } from "../support/processes/child.ts";
import { type CatalogFolder, catalogFolder } from "../support/processes/example-catalog.ts";
import { openSharedStandalone, type SharedStandalone } from "../support/processes/shared-standalone.ts";
import { bytesOf, speak, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { imageOf } from "../upstreams/compatible/compatible.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

const usd = (billable: string, unit: string) =>
  `prices: [{ billable: ${billable}${unit}, usd_per_million: "1000000" }]`;

/** Another gateway of this kind: what a request cost is what that one says. */
const ourOwn = ({ baseUrl }: SharedStandalone) => `
provider:
  slug: far-gateway
  name: Far Gateway
  connection:
    dialect: openai
    base_url: ${baseUrl}/api/v1
    private_address: true
    paths: { voices: /v1/audio/voices, generations: /v1/images }
    edits: input_references
models:
  - { id: far/flite, permaslug: far/flite-1, name: Far flite, description: x, created: 2026-01-01, medium: speech }
  - { id: far/painter, permaslug: far/painter-1, name: Far, description: x, created: 2026-01-01, medium: image }
endpoints:
  - model: far/flite
    upstream_model: local/flite
    speech: { formats: [mp3, pcm], sample_rate_hz: 24000, channels: 1, voices: fetched, voice_optional: true, max_input_characters: 1000 }
    ${usd("input_character", "")}
  - model: far/painter
    upstream_model: local/painter
    image: { formats: [png, webp], sizes: [512x512], max_n: 2, seed: true, max_prompt_characters: 1000 }
    billed_by: reported_cost
    ${usd("output_image", ", unit: image")}
`;

/** Portkey's gateway, which is told by headers whom to call. */
const portkey = (port: number, upstream: OpenAiUpstream) => `
provider:
  slug: portkey
  name: Portkey
  connection:
    dialect: openai
    base_url: http://127.0.0.1:${port}
    private_address: true
    headers: { x-portkey-provider: openai, x-portkey-custom-host: "${upstream.baseUrl}/v1" }
endpoints:
  - model: openai/gpt-image-1.5
    upstream_model: gpt-image-1.5
    image:
      formats: [png, jpeg]
      sizes: [1024x1024]
      max_n: 4
      qualities: [low, medium, high]
      max_references: 2
      mask: true
      streaming: true
      max_streamed_n: 1
      max_prompt_characters: 1000
    ${usd("output_image", ", unit: image")}
`;

let far: SharedStandalone;
let vendor: OpenAiUpstream;
let portkeyProcess: Child;
let folder: CatalogFolder;
let stack: TestStandalone;

beforeAll(async () => {
  far = await openSharedStandalone();
  vendor = await startOpenAiUpstream();
  const port = await freePort();
  portkeyProcess = startPortkey(port);
  await vi.waitFor(async () => expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200), {
    timeout: 60_000,
    interval: 200,
  });
  folder = await catalogFolder({
    "far-gateway.yaml": ourOwn(far),
    "portkey.yaml": portkey(port, vendor),
  });
  stack = await startTestStandalone({
    CATALOG_DIR: folder.path,
    BOOTSTRAP_CREDIT_USD: "1000",
    FAR_GATEWAY_API_KEY: far.inferenceKey,
    PORTKEY_API_KEY: "test-key",
  });
}, 180_000);

afterAll(async () => {
  await stack.close();
  await folder.remove();
  await portkeyProcess.stop();
  await vendor.close();
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

function startPortkey(port: number): Child {
  const script = "node_modules/@portkey-ai/gateway/build/start-server.js";
  return startChild(script, { args: ["--headless", `--port=${port}`], env: { NODE_ENV: "production" } });
}

interface ImagesAnswer {
  readonly data: readonly { b64_json: string }[];
  readonly usage: { readonly cost: number };
}

function draw(
  body: object,
  { baseUrl, inferenceKey }: Pick<TestStandalone, "baseUrl" | "inferenceKey"> = stack,
) {
  return fetch(`${baseUrl}/api/v1/images`, {
    method: "POST",
    headers: { authorization: `Bearer ${inferenceKey}`, "content-type": "application/json" },
    body: JSON.stringify({ prompt: "A lighthouse.", ...body }),
  });
}

describe("another instance of this gateway", () => {
  const input = "The same words twice.";

  test.for(["mp3", "pcm"])("speaks through us as it does itself: %s", async (response_format) => {
    const direct = await speak(far, far.inferenceKey, { model: "local/flite", input, response_format });
    const through = await speak(stack, stack.inferenceKey, { model: "far/flite", input, response_format });
    expect(through.status).toBe(200);
    expect((await bytesOf(through)).equals(await bytesOf(direct))).toBe(true);
    for (const name of ["content-type", "x-audio-sample-rate", "x-audio-channels"]) {
      expect(through.headers.get(name), name).toBe(direct.headers.get(name));
    }
  });

  test("lists the voices of this model to us, and of no other", async () => {
    const voicesAt = async (
      { baseUrl, inferenceKey }: Pick<TestStandalone, "baseUrl" | "inferenceKey">,
      model: string,
    ) => {
      const headers = { authorization: `Bearer ${inferenceKey}` };
      const answer = await fetch(`${baseUrl}/api/v1/audio/voices`, { headers });
      const { voices } = (await answer.json()) as { voices: { id: string; model: string }[] };
      return voices.filter((voice) => voice.model === model).map(({ id }) => id);
    };
    const own = await voicesAt(far, "local/flite");
    expect(own.length).toBeGreaterThan(1);
    await vi.waitFor(async () => expect(await voicesAt(stack, "far/flite")).toEqual(own));
  });

  test("draws through us as it does itself, and is paid what it charged", async () => {
    const look = { seed: 7, size: "512x512", n: 2 };
    const direct = (await (await draw({ model: "local/painter", ...look }, far)).json()) as ImagesAnswer;
    const through = await draw({ model: "far/painter", ...look });
    expect(through.status).toBe(200);
    const { data, usage } = (await through.json()) as ImagesAnswer;
    expect(data.map(({ b64_json }) => b64_json)).toEqual(direct.data.map(({ b64_json }) => b64_json));
    expect(usage.cost).toBe(direct.usage.cost);
    expect(usage.cost).toBeGreaterThan(0);
  });

  test("tells its refusal by kind, and nothing of its words gets through", async () => {
    const refused = await speak(stack, stack.inferenceKey, {
      model: "far/flite",
      input: "x".repeat(900),
      voice: "nobody",
    });
    expect(refused.status).toBe(400);
    const text = await refused.text();
    expect(text).not.toContain(far.inferenceKey);
  });
});

describe("Portkey's gateway in front of a vendor", () => {
  const model = "openai/gpt-image-1.5";
  const only = { provider: { only: ["portkey"] } };

  test("gives the vendor's images", async () => {
    const answer = await draw({ model, n: 2, ...only });
    expect(answer.status).toBe(200);
    const { data, usage } = (await answer.json()) as ImagesAnswer;
    expect(data).toHaveLength(2);
    expect(usage.cost).toBe(2);
    expect(vendor.requests.at(-1)?.headers).toMatchObject({ authorization: "Bearer test-key" });
    expect(vendor.requests.at(-1)?.headers).not.toHaveProperty("x-portkey-custom-host");
  });

  // Version 1.15.2 breaks off whatever it does not read itself ("TypeError: immutable"): events, and answers to forms.
  test("fails of itself with events and forms, which is told as an upstream that failed", async () => {
    const url = `data:image/png;base64,${(await imageOf("64x64")).toString("base64")}`;
    const references = { input_references: [{ type: "image_url", image_url: { url } }] };
    for (const [body, path] of [
      [{ stream: true }, "/v1/images/generations"],
      [references, "/v1/images/edits"],
    ] as const) {
      const answer = await draw({ model, ...body, ...only });
      expect(answer.status).toBe(502);
      // The vendor got it whole all the same.
      expect(vendor.requests.at(-1)?.path).toBe(path);
      expect(((await answer.json()) as { error: { message: string } }).error.message).not.toContain(
        "Something",
      );
    }
  });

  test("hands the vendor's refusals on", async () => {
    vendor.next({ kind: "error", status: 400, code: "moderation_blocked" });
    expect((await draw({ model, ...only })).status).toBe(502);
    vendor.next({ kind: "error", status: 429 });
    expect((await draw({ model, ...only })).status).toBe(529);
  });
});
