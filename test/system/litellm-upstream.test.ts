import { afterAll, describe, expect, test, vi } from "vitest";
import { needPythonClients, openPythonClient, type PythonSession } from "../contract/python-client.ts";
import { type CatalogFolder, catalogFolder } from "../support/processes/example-catalog.ts";
import { bytesOf, speak, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";
import { createAudioSource, firstBytes } from "../upstreams/stand-in/audio-source.ts";

const input = "These words cost what the proxy says.";
/** By the list of prices that comes with it, and as it counts: without blanks. */
const costUsd = input.replaceAll(" ", "").length * 15e-6;

const catalogOf = (port: number) => `
provider:
  slug: litellm
  name: LiteLLM
  connection: { dialect: openai, base_url: "http://127.0.0.1:${port}", private_address: true }
models:
  - { id: far/speaker, permaslug: far/speaker-1, name: Far, description: x, created: 2026-01-01, medium: speech }
endpoints:
  - model: far/speaker
    upstream_model: speaker
    speech: { formats: [mp3], sample_rate_hz: 24000, channels: 1, default_voice: alloy, max_input_characters: 4096 }
    settings: { usage_headers: { cost_usd: x-litellm-response-cost } }
    billed_by: reported_cost
    prices: [{ billable: input_character, usd_per_million: "1000" }]
`;

let vendor: OpenAiUpstream | undefined;
let proxy: PythonSession | undefined;
let folder: CatalogFolder | undefined;
let stack: TestStandalone | undefined;

/** LiteLLM's proxy in front of the vendor's stand-in, and a gateway that knows of it by one file. */
async function open() {
  vendor = await startOpenAiUpstream();
  proxy = openPythonClient("litellm_proxy.py");
  const litellm_params = { model: "openai/tts-1", api_base: `${vendor.baseUrl}/v1`, api_key: "test-key" };
  const { port } = (await proxy.ask({
    model_list: [{ model_name: "speaker", litellm_params, model_info: { mode: "audio_speech" } }],
    general_settings: { master_key: "sk-of-the-proxy" },
  })) as { port: number };
  folder = await catalogFolder({ "litellm.yaml": catalogOf(port) });
  stack = await startTestStandalone({
    CATALOG_DIR: folder.path,
    BOOTSTRAP_CREDIT_USD: "10",
    LITELLM_API_KEY: "sk-of-the-proxy",
  });
  return { vendor, stack };
}

let scene: ReturnType<typeof open> | undefined;

afterAll(async () => {
  await scene?.catch(() => undefined);
  await stack?.close();
  await proxy?.close();
  await folder?.remove();
  await vendor?.close();
});

function say({ inferenceKey, baseUrl }: TestStandalone, more: object = {}): Promise<Response> {
  return speak({ baseUrl }, inferenceKey, { model: "far/speaker", input, ...more });
}

describe("LiteLLM's proxy as an upstream", { timeout: 180_000 }, () => {
  test("hands the vendor's audio through, and what it says that this cost is charged", async (context) => {
    needPythonClients(context);
    scene ??= open();
    const { stack } = await scene;
    const answer = await say(stack);
    expect(answer.status).toBe(200);
    expect((await bytesOf(answer)).equals(firstBytes(createAudioSource("mp3"), 20 * 4096))).toBe(true);
    const id = answer.headers.get("x-generation-id");
    const headers = { authorization: `Bearer ${stack.inferenceKey}` };
    await vi.waitFor(
      async () => {
        const record = await fetch(`${stack.baseUrl}/api/v1/generation?id=${id}`, { headers });
        const { data } = (await record.json()) as { data: { total_cost: number } };
        expect(data.total_cost).toBeCloseTo(costUsd, 9);
      },
      { timeout: 20_000, interval: 100 },
    );
  });

  test("buffers: nothing comes before the vendor's end, while another request is answered", async (context) => {
    needPythonClients(context);
    scene ??= open();
    const { vendor, stack } = await scene;
    const end = Promise.withResolvers<void>();
    vendor.next({ kind: "audio", beforeEnd: () => end.promise });
    const order: string[] = [];
    const held = say(stack).then(async (answer) => {
      order.push("first byte");
      return await bytesOf(answer);
    });
    const request = await vendor.received(vendor.requests.length + 1);
    await vi.waitFor(() => expect(request.sentBytes).toBe(20 * 4096), { timeout: 20_000 });
    expect((await bytesOf(await say(stack))).length).toBe(20 * 4096);
    order.push("vendor ends");
    end.resolve();
    expect((await held).length).toBe(20 * 4096);
    expect(order).toEqual(["vendor ends", "first byte"]);
  });

  test("tells the vendor's refusals by its own words, which stay here", async (context) => {
    needPythonClients(context);
    scene ??= open();
    const { stack } = await scene;
    const answer = await say(stack, { input: "[[status=400]]" });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(await answer.text()).not.toMatch(/BadRequest|stand-in|model group/);
  });
});
