import sharp from "sharp";
import { afterEach, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { drawingAt, imageCall } from "../../test/support/drawing.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type SdapiUpstreamOptions, startSdapiUpstream } from "../../test/upstreams/sdapi.ts";
import type { ImageOutput } from "../contract.ts";
import { createSdapiAdapter } from "./image.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

async function serve(options: SdapiUpstreamOptions & { readonly interruptGraceMs?: number } = {}) {
  const upstream = await startSdapiUpstream(options);
  const http = createOutboundHttp();
  const { interruptGraceMs = 10_000 } = options;
  const adapter = createSdapiAdapter({ http, previewPauseMs: 1, interruptGraceMs });
  opened.push(upstream, http);
  return { upstream, ...drawingAt(adapter, { baseUrl: upstream.baseUrl, apiKey: "" }) };
}

const settings = { exclusive: true };
const streamed = imageCall({ settings, stream: true, prompt: "A boat. [[previews=4]]" });

function gate() {
  const { promise: until, resolve: open } = Promise.withResolvers<void>();
  return { until, open };
}

async function shadesOf(outputs: readonly ImageOutput[]): Promise<readonly number[]> {
  return await Promise.all(
    outputs.map(async (output) => {
      if (output.kind === "text") throw new Error("text");
      const { width, height } = await sharp(output.bytes).metadata();
      expect([width, height]).toEqual([64, 96]);
      const { channels } = await sharp(output.bytes).stats();
      return Math.round(channels[0]?.mean ?? -1);
    }),
  );
}

describe("previews", () => {
  test("come while the server draws, each picture once, before the image", async () => {
    const { draw } = await serve();
    const outputs = await draw({ ...streamed, seed: 7 });
    expect(outputs.map(({ kind }) => kind)).toEqual([...Array(outputs.length - 1).fill("partial"), "image"]);
    const shades = await shadesOf(outputs);
    expect(shades.at(-1)).toBe(7);
    // The last preview may still be on its way when the image is there.
    expect([254, 253, 252, 251]).toEqual(expect.arrayContaining(shades.slice(0, -1)));
    expect(new Set(shades).size).toBe(shades.length);
    expect(shades.length).toBeGreaterThanOrEqual(4);
  });

  test("are as many as were asked for, and with none of them nobody looks", async () => {
    const { upstream, draw } = await serve();
    const kinds = (await draw({ ...streamed, partialImages: 1 })).map(({ kind }) => kind);
    expect(kinds).toEqual(["partial", "image"]);
    const looks = upstream.requests.length;
    expect(await draw({ ...streamed, partialImages: 0 })).toMatchObject([{ kind: "image" }]);
    expect(upstream.requests.length).toBe(looks + 1);
  });

  test("that are another's, where the server says so, are not handed on", async () => {
    const { upstream, draw } = await serve();
    const { until, open } = gate();
    upstream.next({ previews: 2, until });
    // Somebody who should not be there has the server draw.
    const foreign = {
      method: "POST",
      body: JSON.stringify({ prompt: "Mine.", force_task_id: "task(theirs)" }),
    };
    const theirs = fetch(`${upstream.baseUrl}/sdapi/v1/txt2img`, foreign);
    await waitUntil(() => upstream.jobs[0]?.state === "running");
    const drawn = draw({ ...streamed, prompt: "A boat." });
    const looks = () => upstream.requests.filter(({ path }) => path.endsWith("/progress")).length;
    await waitUntil(() => looks() > 6);
    open();
    expect(await drawn).toMatchObject([{ kind: "image" }]);
    expect((await theirs).status).toBe(200);
  });

  test("are given by servers that name no tasks; one without progress draws without them", async () => {
    const older = await serve({ namesTasks: false });
    expect((await older.draw(streamed)).length).toBeGreaterThan(3);
    const bare = await serve({ server: "sd.cpp" });
    expect(await bare.draw(streamed)).toMatchObject([{ kind: "image" }]);
  });
});

describe("a server of our own", () => {
  test("has one job at a time, in their order", async () => {
    const { upstream, draw } = await serve();
    const gates = [gate(), gate(), gate()];
    upstream.next(...gates);
    const drawn = gates.map((_, index) => draw(imageCall({ settings, seed: index })));
    for (const [index, { open }] of gates.entries()) {
      await waitUntil(() => upstream.jobs.at(-1)?.state === "running" && upstream.jobs.length === index + 1);
      expect(upstream.requests.length).toBe(index + 1);
      expect(upstream.jobs[index]?.fields.seed).toBe(index);
      open();
    }
    expect((await Promise.all(drawn)).map(({ length }) => length)).toEqual([1, 1, 1]);
  });

  test("lets no more wait than it may, and forgets who leaves", async () => {
    const { upstream, draw, failureOf } = await serve();
    const { until, open } = gate();
    upstream.next({ until });
    const call = imageCall({ settings: { ...settings, max_waiting: 1 } });
    const first = draw(call);
    const controller = new AbortController();
    const sent: string[] = [];
    const leaves = failureOf(call, { signal: controller.signal, onSent: () => sent.push("left") });
    await upstream.received(1);
    expect(await failureOf(call)).toMatchObject({ kind: "engine_full", retryable: true });
    controller.abort();
    expect((await leaves).kind).toBe("timeout");
    const second = draw(call);
    open();
    expect((await Promise.all([first, second])).flat()).toMatchObject([{ kind: "image" }, { kind: "image" }]);
    expect([upstream.jobs.length, sent]).toEqual([2, []]);
  });

  test.each(["signal", "return"])(
    "is interrupted when its job is left, and free when it has heard: %s",
    async (how) => {
      const { upstream, begin, draw } = await serve();
      upstream.next({ previews: 99, until: gate().until });
      const controller = new AbortController();
      const answer = await begin(streamed, { signal: controller.signal });
      const output = answer.output[Symbol.asyncIterator]();
      expect((await output.next()).value).toMatchObject({ kind: "partial" });
      if (how === "return") await output.return?.();
      else controller.abort();
      if (how === "signal") await expect(output.next()).rejects.toMatchObject({ kind: "timeout" });
      expect(await draw(imageCall({ settings }))).toMatchObject([{ kind: "image" }]);
      expect(upstream.jobs.map(({ state }) => state)).toEqual(["interrupted", "done"]);
      const paths = upstream.requests.map(({ path }) => path.slice("/sdapi/v1/".length));
      expect(paths.filter((path) => path !== "progress")).toEqual(["txt2img", "interrupt", "txt2img"]);
      expect(upstream.requests[0]?.fate).toBe("finished");
    },
  );

  test("that does not hear an interrupt is left after a while", async () => {
    const { upstream, begin, draw } = await serve({ interruptGraceMs: 20 });
    const { until, open } = gate();
    upstream.next({ isDeaf: true, until });
    const controller = new AbortController();
    const left = begin(imageCall({ settings }), { signal: controller.signal }).catch(
      (error: unknown) => error,
    );
    const request = await upstream.received(1);
    controller.abort();
    expect(await left).toMatchObject({ kind: "timeout" });
    const next = draw(imageCall({ settings }));
    expect(await request.ended).toBe("closed_by_client");
    open();
    expect(await next).toMatchObject([{ kind: "image" }]);
  });

  test("is free for the next call after a failure", async () => {
    const { upstream, draw, failureOf } = await serve();
    upstream.next({ error: { status: 500, body: "{}" } });
    expect((await failureOf(streamed)).kind).toBe("upstream");
    upstream.next({ cutAfterBytes: 30 });
    expect((await failureOf(imageCall({ settings }))).kind).toBe("network");
    expect((await draw(streamed)).at(-1)).toMatchObject({ kind: "image" });
  });
});
