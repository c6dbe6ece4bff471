import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  cpuSeconds,
  draw,
  eventsOf,
  type ImageFlows,
  imageOf,
  imageWays,
  leastPicture,
  memoryMib,
  startImageFlows,
  upstreamPicture,
} from "../support/processes/image-flow.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { ImageBehaviour } from "../upstreams/openai/openai-image-behaviour.ts";
import type { ReceivedRequest } from "../upstreams/stand-in/stand-in-server.ts";

const mib = 1 << 20;

let flows: ImageFlows;

beforeAll(async () => {
  flows = await startImageFlows();
}, 120_000);

afterAll(async () => {
  await flows?.[Symbol.asyncDispose]();
});

describe.for(imageWays)("a client that leaves, %s,", (way) => {
  test.for<[string, (gate: Promise<void>) => ImageBehaviour, boolean]>([
    ["before the upstream answers", (gate) => ({ kind: "image", beforeHeaders: () => gate }), false],
    [
      "while an answer comes in",
      (gate) => ({ kind: "image", imageBytes: mib, beforeEnd: () => gate }),
      false,
    ],
    [
      "amid a stream",
      (gate) => ({ kind: "image", partials: 2, beforeEvent: (index) => (index > 0 ? gate : undefined) }),
      true,
    ],
  ])("does not end the upstream's work: %s", async ([, behaviour, stream]) => {
    const { upstream } = flows.in(way);
    const gate = Promise.withResolvers<void>();
    upstream.next(behaviour(gate.promise));
    const arrived = upstream.received(upstream.requests.length + 1);
    const leaving = new AbortController();
    const answer = draw(flows.in(way), { ...upstreamPicture, stream }, { signal: leaving.signal });
    answer.catch(() => undefined);
    const request = await arrived;
    if (stream) expect((await eventsOf(await answer).next()).value?.type).toMatch(/partial_image$/);
    leaving.abort();
    await expect(answer.then((response) => response.text())).rejects.toThrow();
    expect(request.fate).toBe("open");
    gate.resolve();
    expect(await request.ended).toBe("finished");
  });

  test("amid many pictures ends the engine's work on the rest", async (context) => {
    context.skip(process.platform !== "linux", "reads the CPU time of processes from /proc");
    const { pids } = flows.in(way);
    const body = { ...leastPicture, resolution: "2K", stream: true };
    await imageOf(await draw(flows.in(way), leastPicture));
    const before = await settledCpuSeconds(pids);
    for await (const _event of eventsOf(await draw(flows.in(way), body)));
    const between = await settledCpuSeconds(pids);
    const leaving = new AbortController();
    const events = eventsOf(await draw(flows.in(way), { ...body, n: 10 }, { signal: leaving.signal }));
    await events.next();
    leaving.abort();
    await expect(events.next()).rejects.toThrow();
    const after = await settledCpuSeconds(pids);
    expect((after - between) / (between - before)).toBeLessThan(2);
  }, 60_000);
});

/** The CPU time that processes have used together, once they have used next to none for a while. */
async function settledCpuSeconds(pids: Readonly<Record<string, number>>): Promise<number> {
  const rowLength = 5;
  const row: number[] = [];
  const isSettled = () => {
    row.push(Object.values(pids).reduce((sum, pid) => sum + cpuSeconds(pid), 0));
    if (row.length > rowLength) row.shift();
    return row.length === rowLength && (row.at(-1) ?? 0) - (row[0] ?? 0) < 0.1;
  };
  await waitUntil(isSettled, { timeoutMs: 40_000, intervalMs: 200 });
  return row.at(-1) ?? 0;
}

describe.for(imageWays)("clients that stop reading, %s,", (way) => {
  const readers = 3;
  const partials = 55;
  const partialBytes = 1.25 * mib;
  /** What a stream comes to, as the base64 in which its images travel. */
  const streamBytes = (partials + 1) * partialBytes * (4 / 3);

  test("hold a bounded part of their streams in memory, and get the rest when they read on", async (context) => {
    context.skip(process.platform !== "linux", "reads memory from /proc");
    const { upstream, pids } = flows.in(way);
    const open = async (previews: number) => {
      upstream.next({ kind: "image", partials: previews, imageBytes: partialBytes });
      return SlowReader.open(await draw(flows.in(way), { ...upstreamPicture, stream: true }));
    };
    // What a first stream needs is there afterwards.
    await (await open(8)).readToEnd();
    const before = memoryOf(pids);
    const from = upstream.requests.length;
    const paused = await Promise.all(Array.from({ length: readers }, () => open(partials)));
    const requests = upstream.requests.slice(from);
    await waitUntilStuck(requests);
    // The rest waits in the upstream: the kernel's buffers hold some of it, but not most.
    const sentBytes = requests.reduce((sum, request) => sum + request.sentBytes, 0);
    expect(sentBytes).toBeLessThan(readers * streamBytes * 0.75);
    const held = memoryOf(pids);
    for (const name of Object.keys(pids)) {
      const grownMib = (held[name] ?? 0) - (before[name] ?? 0);
      expect(grownMib, name).toBeLessThan((readers * streamBytes) / mib / 2);
    }
    const [first, ...others] = await Promise.all(paused.map((reader) => reader.readToEnd()));
    expect(first?.bytes).toBeGreaterThan(streamBytes);
    expect(first?.tail).toMatch(/"usage":\{[^}]+\}\}\n\ndata: \[DONE\]\n\n$/);
    expect(others).toEqual(others.map(() => first));
  }, 120_000);
});

/** A client that has read the beginning of an answer, and reads on when it is told to. */
class SlowReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #bytes = 0;

  private constructor(reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.#reader = reader;
  }

  static async open({ status, body }: Response): Promise<SlowReader> {
    if (status !== 200 || body === null) throw new Error(`answered ${status}`);
    const reader = new SlowReader(body.getReader());
    await reader.#read();
    return reader;
  }

  /** All bytes of the answer, and the last of them as text. */
  async readToEnd(): Promise<{ bytes: number; tail: string }> {
    let tail = "";
    for (let piece = await this.#read(); piece !== undefined; piece = await this.#read()) {
      tail = `${tail}${Buffer.from(piece.subarray(-200)).toString("latin1")}`.slice(-200);
    }
    return { bytes: this.#bytes, tail };
  }

  async #read(): Promise<Uint8Array | undefined> {
    const { value } = await this.#reader.read();
    this.#bytes += value?.length ?? 0;
    return value;
  }
}

function memoryOf(pids: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, memoryMib(pid, "VmRSS")]));
}

/** Resolves once the upstream has been able to send nothing for a while. */
async function waitUntilStuck(requests: readonly ReceivedRequest[]): Promise<void> {
  const rowLength = 10;
  const row: number[] = [];
  const isStuck = () => {
    row.push(requests.reduce((sum, { sentBytes }) => sum + sentBytes, 0));
    if (row.length > rowLength) row.shift();
    return row.length === rowLength && row.every((bytes) => bytes > 0 && bytes === row[0]);
  };
  await waitUntil(isStuck, { timeoutMs: 60_000, intervalMs: 100 });
}
