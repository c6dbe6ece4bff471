/**
 * Bounds how much decoding and encoding goes on at once, in pixels and in jobs.
 *
 * 1. Jobs begin in the order in which they came: a big one waits for room, and none overtakes it.
 * 2. A job of more pixels than there are in all runs alone.
 * 3. Aborting ends the wait, and the caller's part in a job that runs; its room is free only when the job has ended,
 *    because what runs in native code can't be stopped.
 */

/** Most pixels of an image that is decoded at all. */
export const maxImagePixels = 50_000_000;

/** Pixels worked on at once unless told otherwise: one image of 4096 × 4096. */
const defaultPixels = 2 ** 24;
/** Jobs at once: sharp works on the thread pool of the process, and name lookups need one of its four threads. */
const defaultJobs = 3;

interface WaitingJob {
  readonly pixels: number;
  begin(): void;
}

/** The budget; a process needs one. */
export class PixelBudget {
  readonly #maxPixels: number;
  #freePixels: number;
  #freeJobs: number;
  readonly #waiting: WaitingJob[] = [];

  constructor(maxPixels = defaultPixels, maxJobs = defaultJobs) {
    this.#maxPixels = maxPixels;
    this.#freePixels = maxPixels;
    this.#freeJobs = maxJobs;
  }

  /** Runs `work` once there is room for an image of `pixels`. Throws what it throws, or the signal's reason. */
  async run<T>(pixels: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const taken = Math.min(pixels, this.#maxPixels);
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#room(taken, aborted);
      return await Promise.race([aborted, this.#occupy(taken, work)]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #room(pixels: number, aborted: Promise<never>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const job: WaitingJob = { pixels, begin: resolve };
    this.#waiting.push(job);
    this.#beginWaiting();
    try {
      await Promise.race([aborted, promise]);
    } catch (thrown) {
      const position = this.#waiting.indexOf(job);
      if (position < 0) this.#free(pixels);
      else this.#waiting.splice(position, 1);
      this.#beginWaiting();
      throw thrown;
    }
  }

  async #occupy<T>(pixels: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      this.#free(pixels);
      this.#beginWaiting();
    }
  }

  #free(pixels: number): void {
    this.#freePixels += pixels;
    this.#freeJobs++;
  }

  #beginWaiting(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (next === undefined || this.#freeJobs === 0 || next.pixels > this.#freePixels) return;
      this.#waiting.shift();
      this.#freePixels -= next.pixels;
      this.#freeJobs--;
      next.begin();
    }
  }
}
