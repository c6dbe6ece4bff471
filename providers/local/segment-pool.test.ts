import { afterEach, describe, expect, it } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { ProviderError } from "../contract.ts";
import { SegmentPool, type SegmentPoolOptions } from "./segment-pool.ts";

const engineUrl = new URL("./flite-worker.ts", import.meta.url);
const unrulyUrl = new URL("./__fixtures__/unruly-worker.ts", import.meta.url);
const pools: SegmentPool[] = [];

function openPool(options: Partial<SegmentPoolOptions> = {}): SegmentPool {
  const pool = new SegmentPool({ threads: 1, segmentTimeoutMs: 20_000, workerUrl: engineUrl, ...options });
  pools.push(pool);
  return pool;
}

const never = new AbortController().signal;

function say(pool: SegmentPool, text: string, signal = never, speed = 1) {
  return pool.run({ text, voice: "slt", speed }, signal);
}

async function failureOf(promise: Promise<unknown>): Promise<ProviderError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ProviderError);
  return thrown as ProviderError;
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

describe("SegmentPool", () => {
  it("runs segments in the order in which they came", async () => {
    const pool = openPool();
    const ended: number[] = [];
    const numbers = [1, 2, 3, 4, 5];
    await Promise.all(numbers.map((number) => say(pool, "The same words.").then(() => ended.push(number))));
    expect(ended).toEqual(numbers);
  });

  it("runs as many segments as it has threads", async () => {
    const pool = openPool({ threads: 2 });
    const spoken = [1, 2, 3, 4, 5, 6].map(() => say(pool, "The same words."));
    expect({ running: pool.running, waiting: pool.waiting }).toEqual({ running: 2, waiting: 4 });
    await Promise.all(spoken);
    await waitUntil(() => pool.running === 0);
    expect({ waiting: pool.waiting, completed: pool.completed }).toEqual({ waiting: 0, completed: 6 });
  });

  it("takes a segment whose signal fires out of the line", async () => {
    const pool = openPool();
    const running = say(pool, "One.");
    const leaver = new AbortController();
    const leaving = failureOf(say(pool, "Two.", leaver.signal));
    const staying = say(pool, "Three.");
    leaver.abort();
    expect(pool.waiting).toBe(1);
    expect((await leaving).kind).toBe("timeout");
    await Promise.all([running, staying]);
    expect(pool.completed).toBe(2);
  });

  it("rejects a running segment at once when its signal fires, and lets its thread finish", async () => {
    const pool = openPool();
    await say(pool, "Warm up.");
    const controller = new AbortController();
    const running = failureOf(say(pool, "x".repeat(200), controller.signal, 0.5));
    controller.abort(new ProviderError("network", "the reason"));
    expect((await running).message).toBe("the reason");
    expect({ running: pool.running, completed: pool.completed }).toEqual({ running: 1, completed: 1 });
    await say(pool, "The same thread speaks again.");
    expect(pool.completed).toBe(3);
  });

  it("takes nothing whose signal has fired already", async () => {
    const pool = openPool();
    expect((await failureOf(say(pool, "One.", AbortSignal.abort()))).kind).toBe("timeout");
    expect({ running: pool.running, waiting: pool.waiting }).toEqual({ running: 0, waiting: 0 });
  });

  it("reports what the worker throws as upstream, its words in the cause alone", async () => {
    const pool = openPool({ workerUrl: unrulyUrl });
    const error = await failureOf(say(pool, "throw"));
    expect(error.kind).toBe("upstream");
    expect(error.message).not.toContain("own words");
    expect(String(error.cause)).toContain("the engine's own words");
    await expect(say(pool, "next")).resolves.toHaveLength(1);
  });

  it("replaces a thread that crashes", async () => {
    const pool = openPool({ workerUrl: unrulyUrl });
    const crash = failureOf(say(pool, "crash"));
    const behind = say(pool, "behind it in the line");
    expect((await crash).kind).toBe("upstream");
    await expect(behind).resolves.toHaveLength(1);
  });

  it("ends a thread that takes too long, and goes on with another", async () => {
    const pool = openPool({ workerUrl: unrulyUrl, segmentTimeoutMs: 3_000 });
    const hang = failureOf(say(pool, "hang"));
    const behind = say(pool, "behind it in the line");
    expect((await hang).kind).toBe("timeout");
    await expect(behind).resolves.toHaveLength(1);
  });

  it("rejects what waits and runs when closed, and takes nothing more", async () => {
    const pool = openPool();
    await say(pool, "Warm up.");
    const running = failureOf(say(pool, "x".repeat(200), never, 0.5));
    const waiting = failureOf(say(pool, "Two."));
    await pool.close();
    expect((await waiting).kind).toBe("overloaded");
    expect((await running).retryable).toBe(true);
    await waitUntil(() => pool.running === 0);
    expect((await failureOf(say(pool, "Three."))).kind).toBe("overloaded");
    expect(pool.completed).toBe(1);
  });

  it("can be closed before its threads have started", async () => {
    const pool = openPool();
    const first = failureOf(say(pool, "One."));
    await pool.close();
    expect((await first).kind).toBe("overloaded");
  });
});
