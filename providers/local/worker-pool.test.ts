import { afterEach, describe, expect, it } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { WorkerPool, type WorkerPoolOptions } from "./worker-pool.ts";

interface Load {
  readonly name: string;
  readonly heavy: boolean;
  readonly gate?: Int32Array<SharedArrayBuffer>;
}

const workerUrl = new URL("./__fixtures__/steady-worker.ts", import.meta.url);
const never = new AbortController().signal;
const pools: WorkerPool<Load, string>[] = [];

function openPool(options: Partial<WorkerPoolOptions<Load>> = {}): WorkerPool<Load, string> {
  const pool = new WorkerPool<Load, string>({
    threads: 2,
    taskTimeoutMs: 20_000,
    workerUrl,
    workerExport: "run",
    workerData: async () => "of the pool",
    isHeavy: ({ heavy }) => heavy,
    ...options,
  });
  pools.push(pool);
  return pool;
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

describe("WorkerPool", () => {
  it("starts its threads with what it was given", async () => {
    await expect(openPool().run({ name: "one", heavy: false }, never)).resolves.toBe("one of the pool");
  });

  it("lets others go before a heavy task while another runs, and then takes it", async () => {
    const pool = openPool();
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const ended: string[] = [];
    const run = (name: string, heavy: boolean, load: Partial<Load> = {}) =>
      pool.run({ name, heavy, ...load }, never).then(() => ended.push(name));
    const first = run("heavy 1", true, { gate });
    const second = run("heavy 2", true);
    expect({ running: pool.running, waiting: pool.waiting }).toEqual({ running: 1, waiting: 1 });
    await Promise.all([run("light 1", false), run("light 2", false)]);
    expect(ended).toEqual(["light 1", "light 2"]);
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    await Promise.all([first, second]);
    expect(ended).toEqual(["light 1", "light 2", "heavy 1", "heavy 2"]);
    await waitUntil(() => pool.running === 0);
  });

  it("leaves a thread idle rather than run two heavy tasks", async () => {
    const pool = openPool();
    const all = [1, 2, 3].map((number) => pool.run({ name: String(number), heavy: true }, never));
    expect({ running: pool.running, waiting: pool.waiting }).toEqual({ running: 1, waiting: 2 });
    await Promise.all(all);
  });

  it("lets as many heavy tasks run as it was told", async () => {
    const pool = openPool({ threads: 3, maxHeavy: 2 });
    const all = [1, 2, 3].map((number) => pool.run({ name: String(number), heavy: true }, never));
    expect({ running: pool.running, waiting: pool.waiting }).toEqual({ running: 2, waiting: 1 });
    await Promise.all(all);
  });
});
