import { Client } from "@stable-canvas/comfyui-client";
import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readExample } from "../support/own-gpu.ts";
import { type ComfyuiUpstream, startComfyuiUpstream } from "./comfyui.ts";
import type { PostedGraph } from "./comfyui-nodes.ts";

const graph = JSON.parse(await readExample("comfyui", "text-to-image.json")) as Record<
  string,
  { class_type: string; inputs: Record<string, unknown> }
>;

let upstream: ComfyuiUpstream;
let client: Client;

beforeEach(async () => {
  upstream = await startComfyuiUpstream();
  client = new Client({ api_host: `127.0.0.1:${upstream.port}`, fetch, WebSocket });
});
afterEach(async () => {
  client.close();
  await upstream.close();
});

/** The graph with another size and seed. */
function changed(seed: number, more: Readonly<Record<string, Record<string, unknown>>> = {}): PostedGraph {
  const copy = structuredClone(graph);
  Object.assign(copy["5"]?.inputs ?? {}, { width: 96, height: 64 });
  Object.assign(copy["3"]?.inputs ?? {}, { seed });
  for (const [node, inputs] of Object.entries(more)) Object.assign(copy[node]?.inputs ?? {}, inputs);
  return copy;
}

describe("a client of others against the stand-in", () => {
  test("queues a graph, hears of its progress with previews, and gets its images", async () => {
    client.connect();
    await new Promise<void>((resolve) => client.on("connected", () => resolve()));
    const previews: Blob[] = [];
    const steps: number[] = [];
    client.on("b_preview", (preview) => previews.push(preview));
    upstream.next({ previews: 2 });
    const { images } = await client.enqueue(changed(7, { 5: { batch_size: 2 } }), {
      disable_random_seed: true,
      progress: ({ value }) => steps.push(value),
    });
    expect(steps).toEqual([0, 1, 2, 3]);
    expect(previews).toHaveLength(4);
    for (const preview of previews) {
      expect(await sharp(await preview.arrayBuffer()).metadata()).toMatchObject({
        format: "jpeg",
        width: 64,
      });
    }
    // Its previews are among what this client gives, as bytes.
    const stored = images.flatMap(({ type, data }) => (type === "url" ? [data] : []));
    expect(stored).toHaveLength(2);
    for (const [index, url] of stored.entries()) {
      const bytes = await (await fetch(url)).arrayBuffer();
      expect(await sharp(bytes).metadata()).toMatchObject({ format: "png", width: 96, height: 64 });
      expect((await sharp(bytes).stats()).channels[0]?.mean).toBe(7 + index);
    }
  });

  test("polls for a prompt without a websocket, and sees that what was made before makes no images", async () => {
    const once = await client.enqueue_polling(changed(1), { disable_random_seed: true, polling_ms: 5 });
    expect(once.images).toHaveLength(1);
    const again = await client.enqueue_polling(changed(1), { disable_random_seed: true, polling_ms: 5 });
    expect(again.images).toHaveLength(0);
  });

  test("takes a prompt out of the queue, not the one that runs", async () => {
    const { promise: until, resolve: end } = Promise.withResolvers<void>();
    upstream.next({ until });
    const ids: string[] = [];
    for (const seed of [1, 2, 3]) ids.push((await client._enqueue_prompt(changed(seed))).prompt_id);
    for (const id of ids.slice(0, 2)) await client.deleteItem("queue", id);
    end();
    await client.waitForPrompt(ids[2] ?? "", 5);
    expect(upstream.prompts.map(({ state }) => state)).toEqual(["done", "deleted", "done"]);
    expect(await client.getPromptStatus(ids[0] ?? "")).toMatchObject({ done: true, running: false });
  });

  test.each([
    [changed(1, { 4: { ckpt_name: "none.safetensors" } }), "value_not_in_list"],
    [changed(1, { 5: { width: 1 } }), "value_smaller_than_min"],
    [{ ...changed(1), 4: { class_type: "Unknown", inputs: {} } }, "invalid_prompt"],
  ])("is told what is wrong with a graph", async (wrong, type) => {
    const refused: unknown = await client._enqueue_prompt(wrong).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Error);
    const answer = await fetch(`${upstream.baseUrl}/prompt`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: wrong }),
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(type);
  });
});
