import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Child, startChild } from "../support/processes/child.ts";
import type { ProcessStack } from "../support/processes/process-stack.ts";
import { type FlowStack, flowModel, startFlowStack } from "../support/processes/speech-flow.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createAudioSource } from "../upstreams/stand-in/audio-source.ts";

const mib = 1 << 20;
const readers = 50;
const streamBytes = 16 * mib;
const readFirstBytes = 64 * 1024;
const input = `[[audio=${streamBytes} chunk=16384]] Read slowly.`;

/** What both processes and the readers may hold of all streams together: what left the upstream less the kernel's. */
const maxHeldBytes = readers * mib;
/** How much a process may grow: what it may hold, and what it takes to pass hundreds of MiB on. */
const maxGrowthBytes = maxHeldBytes + 250 * mib;

let upstream: Child;
let upstreamUrl: string;
let flow: FlowStack;

beforeAll(async () => {
  upstream = startChild("test/upstreams/openai/openai-main.ts");
  upstreamUrl = await upstream.line((line) => line.startsWith("http://"));
  flow = await startFlowStack({ env: { OPENAI_API_KEY: "test-key", OPENAI_BASE_URL: upstreamUrl } });
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
  await upstream?.stop();
});

test("50 readers that pause hold a bounded part of their 800 MiB, and then get every byte", async (context) => {
  context.skip(process.platform !== "linux", "reads memory and bytes written from /proc");
  const { stack } = flow;
  const idle = measure(stack);
  const opened: SlowReader[] = [];
  try {
    await Promise.all(
      Array.from({ length: readers }, async () => void opened.push(await SlowReader.open(stack))),
    );
    const paused = await waitUntilStable(() => measure(stack));
    const taken = opened.reduce((sum, { bytes }) => sum + bytes, 0);
    expect(paused.handedOut - idle.handedOut - paused.inKernel - taken).toBeLessThan(maxHeldBytes);
    expect(paused.gateway - idle.gateway).toBeLessThan(maxGrowthBytes);
    expect(paused.speech - idle.speech).toBeLessThan(maxGrowthBytes);
    const ended = await Promise.all(opened.map((reader) => reader.readToEnd()));
    expect(ended).toEqual(Array.from({ length: readers }, () => ({ bytes: streamBytes, intact: true })));
  } finally {
    for (const reader of opened) reader.leave();
  }
}, 60_000);

/** Bytes each. */
interface Figures {
  /** Resident memory. */
  readonly gateway: number;
  readonly speech: number;
  /** What the upstream has written to its connections. */
  readonly handedOut: number;
  /** What waits in the kernel's buffers of all connections: much, and how much depends on the machine. */
  readonly inKernel: number;
}

function measure(stack: ProcessStack): Figures {
  const ports = [upstreamUrl, stack.urls.speech, stack.restUrl].map((url) => Number(new URL(url).port));
  return {
    gateway: residentBytes(stack.processes.child("gateway").pid),
    speech: residentBytes(stack.processes.child("speech").pid),
    handedOut: writtenBytes(upstream.pid),
    inKernel: queuedBytes(ports),
  };
}

/** The last of a row of samples in which the upstream gave nothing and memory hardly moved. */
async function waitUntilStable(sample: () => Figures): Promise<Figures> {
  const rowLength = 10;
  const row: Figures[] = [];
  const spread = (name: keyof Figures) => {
    const values = row.map((figures) => figures[name]);
    return Math.max(...values) - Math.min(...values);
  };
  return waitUntil(
    () => {
      row.push(sample());
      if (row.length > rowLength) row.shift();
      const isStable =
        row.length === rowLength &&
        spread("handedOut") === 0 &&
        spread("gateway") < mib &&
        spread("speech") < mib;
      return isStable ? row.at(-1) : undefined;
    },
    { timeoutMs: 30_000, intervalMs: 100 },
  );
}

function residentBytes(pid: number): number {
  return 1024 * figureOf(`/proc/${pid}/status`, /^VmRSS:\s+(\d+) kB$/m);
}

function writtenBytes(pid: number): number {
  return figureOf(`/proc/${pid}/io`, /^wchar: (\d+)$/m);
}

/** What was sent on connections to these ports, and not read yet. */
function queuedBytes(ports: readonly number[]): number {
  const portOf = (address = "") => Number.parseInt(address.split(":")[1] ?? "", 16);
  let sum = 0;
  for (const line of readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1)) {
    const [, local, remote, , queues = ""] = line.trim().split(/\s+/);
    if (!ports.includes(portOf(local)) && !ports.includes(portOf(remote))) continue;
    for (const queue of queues.split(":")) sum += Number.parseInt(queue, 16);
  }
  return sum;
}

function figureOf(file: string, pattern: RegExp): number {
  const figure = Number(pattern.exec(readFileSync(file, "utf8"))?.[1]);
  if (Number.isNaN(figure)) throw new Error(`${file} has no ${pattern}`);
  return figure;
}

/** A client that reads the first bytes of an answer, then nothing until it is told to; compares what it reads. */
class SlowReader {
  static readonly #expected = createAudioSource("pcm");
  readonly #answer: IncomingMessage;
  bytes = 0;
  #intact = true;

  private constructor(answer: IncomingMessage) {
    this.#answer = answer;
    answer.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  /** Resolves once it has paused. */
  static async open({ restUrl, inferenceKey }: ProcessStack): Promise<SlowReader> {
    const request = httpRequest(`${restUrl}/audio/speech`, {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${inferenceKey}`, "content-type": "application/json" },
    });
    request.end(JSON.stringify({ model: flowModel, voice: "alloy", response_format: "pcm", input }));
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    const reader = new SlowReader(answer);
    await once(answer, "pause");
    return reader;
  }

  async readToEnd(): Promise<{ bytes: number; intact: boolean }> {
    const ended = once(this.#answer, "end");
    this.#answer.resume();
    await ended;
    return { bytes: this.bytes, intact: this.#intact };
  }

  leave(): void {
    this.#answer.destroy();
  }

  #take(chunk: Buffer): void {
    const isFirstRead = this.bytes < readFirstBytes;
    let at = 0;
    for (const piece of SlowReader.#expected.pieces(this.bytes, this.bytes + chunk.length)) {
      this.#intact &&= chunk.subarray(at, at + piece.length).equals(piece);
      at += piece.length;
    }
    this.bytes += chunk.length;
    if (isFirstRead && this.bytes >= readFirstBytes) this.#answer.pause();
  }
}
