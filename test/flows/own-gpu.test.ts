import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodeServerSentEvents } from "../../lib/http/sse-decode.ts";
import { copyExamples } from "../support/own-gpu.ts";
import { startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type ComfyuiUpstream, startComfyuiUpstream } from "../upstreams/comfyui.ts";
import { type SdapiUpstream, startSdapiUpstream } from "../upstreams/sdapi.ts";

/** The gateway as an operator sets it up for his own machines: the examples that come along, copied, and two addresses. */
let stack: TestStandalone;
let comfyui: ComfyuiUpstream;
let sdapi: SdapiUpstream;
let examples: Awaited<ReturnType<typeof copyExamples>>;

beforeAll(async () => {
  comfyui = await startComfyuiUpstream({ auth: "ann:secret" });
  sdapi = await startSdapiUpstream({ auth: "ann:secret", patienceMs: 5_000 });
  examples = await copyExamples("sdapi.yaml", "comfyui.yaml", "comfyui");
  stack = await startTestStandalone({
    CATALOG_DIR: examples.directory,
    COMFYUI_BASE_URL: comfyui.baseUrl,
    COMFYUI_API_KEY: "ann:secret",
    SDAPI_BASE_URL: sdapi.baseUrl,
    SDAPI_API_KEY: "ann:secret",
  });
});

afterAll(async () => {
  await stack.close();
  await Promise.all([comfyui.close(), sdapi.close(), examples.remove()]);
});

function draw(body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${stack.baseUrl}/api/v1/images`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.inferenceKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function* eventsOf(response: Response) {
  if (response.body === null) throw new Error("no body");
  for await (const { data } of decodeServerSentEvents(response.body, 1 << 26)) {
    if (data !== "[DONE]") yield JSON.parse(data) as { type: string; b64_json: string; media_type?: string };
  }
}

describe.each(["own/sdxl", "own/sdxl-comfyui"])("%s on a machine of one's own", (model) => {
  const prompt = "A lighthouse. [[previews=2]]";

  test("sends its previews through the gateway, then the image, all of which can be decoded", async () => {
    const response = await draw({ model, prompt, stream: true, size: "832x1216", quality: "high", seed: 77 });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const events = await Array.fromAsync(eventsOf(response));
    const types = events.map(({ type }) => type.replace("image_generation.", ""));
    expect(types.slice(0, -1).length).toBeGreaterThan(0);
    expect(types).toEqual([...types.slice(0, -1).map(() => "partial_image"), "completed"]);
    const seen: (number | undefined)[] = [];
    for (const { b64_json } of events) {
      const pixels = await sharp(Buffer.from(b64_json, "base64")).stats();
      seen.push(Math.round(pixels.channels[0]?.mean ?? -1));
    }
    expect(seen.at(-1)).toBe(77);
    expect(new Set(seen).size).toBe(seen.length);
    const whole = await sharp(Buffer.from(events.at(-1)?.b64_json ?? "", "base64")).metadata();
    expect([whole.format, whole.width, whole.height]).toEqual(["png", 832, 1216]);
  });

  test("starts from a reference, and is transcoded to what is asked for", async () => {
    const canvas = { create: { width: 64, height: 64, channels: 3, background: "#335577" } } as const;
    const url = `data:image/png;base64,${(await sharp(canvas).png().toBuffer()).toString("base64")}`;
    const input_references = [{ type: "image_url", image_url: { url } }];
    const response = await draw({
      model,
      prompt: "Brighter.",
      input_references,
      output_format: "webp",
      n: 2,
    });
    const { data } = (await response.json()) as { data: { b64_json: string }[] };
    expect(data).toHaveLength(2);
    const made = await sharp(Buffer.from(data[0]?.b64_json ?? "", "base64")).metadata();
    expect([made.format, made.width, made.height]).toEqual(["webp", 1024, 1024]);
  });
});

test("who leaves a server of the gateway's own has it interrupted, and the next one is served", async () => {
  sdapi.next({ previews: 50, until: new Promise(() => undefined) });
  const leaving = new AbortController();
  const response = await draw({ model: "own/sdxl", prompt: "A boat.", stream: true }, leaving.signal);
  for await (const { type } of eventsOf(response)) {
    expect(type).toBe("image_generation.partial_image");
    break;
  }
  leaving.abort();
  await waitUntil(() => sdapi.jobs.at(-1)?.state === "interrupted");
  expect((await draw({ model: "own/sdxl", prompt: "A boat." })).status).toBe(200);
});
