/**
 * Bounds how much decoding and encoding of images goes on at once, in jobs and in bytes of decoded memory, fairly
 * between keys.
 *
 * 1. What runs takes no more than all bytes and all jobs; what runs for one key, no more than its share: half of the
 *    bytes, and all jobs but one. So whatever one key sends, another one's job finds room at once.
 * 2. Keys take turns, and the jobs of one key begin in their order. A key whose share is taken is passed over. Where
 *    there is no room in all, the job whose turn it is waits for it, and none overtakes it: big ones don't starve.
 * 3. A job that needs more than a share is counted as a whole share.
 * 4. Aborting ends the wait, and the caller's part in a job that runs; its room is free only when the job has ended,
 *    because what runs in native code can't be stopped.
 */

const mebibyte = 1024 * 1024;

/** Most pixels of an image that is decoded at all. */
export const maxImagePixels = 50_000_000;

/** Most decoded memory of one image, bytes: what 4096 × 4096 pixels of 8 bytes take, and 32 MiB beside them. */
export const maxDecodedBytes = 160 * mebibyte;

/** Jobs at once: sharp works on the thread pool of the process, and name lookups need one of its four threads. */
const defaultJobs = 3;

/** Where the jobs of one key run. */
export interface DecodeRoom {
  /**
   * Runs `work`, which holds so many bytes of decoded memory, once there is room for it. Throws what it throws, or the
   * signal's reason.
   */
  run<T>(bytes: number, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/** Bounds of a DecodeBudget; what is not given is as large as suits one process. */
interface DecodeBudgetOptions {
  readonly maxBytes?: number;
  readonly maxJobs?: number;
}

interface Job {
  readonly bytes: number;
  begin(): void;
}

interface KeyUse {
  bytes: number;
  jobs: number;
}

/** The budget; a process needs one. */
export class DecodeBudget {
  readonly #keyBytes: number;
  readonly #keyJobs: number;
  #freeBytes: number;
  #freeJobs: number;
  readonly #running = new Map<string, KeyUse>();
  /** Keys with jobs that wait, in the order of their turns. */
  readonly #waiting = new Map<string, Job[]>();

  constructor({ maxBytes = 2 * maxDecodedBytes, maxJobs = defaultJobs }: DecodeBudgetOptions = {}) {
    this.#freeBytes = maxBytes;
    this.#freeJobs = maxJobs;
    this.#keyBytes = maxBytes / 2; // 1.
    this.#keyJobs = Math.max(1, maxJobs - 1); // 1.
  }

  of(key: string): DecodeRoom {
    return { run: (bytes, signal, work) => this.#run(key, bytes, signal, work) };
  }

  async #run<T>(key: string, bytes: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const taken = Math.min(bytes, this.#keyBytes); // 3.
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#room(key, taken, aborted);
      return await Promise.race([aborted, this.#occupy(key, taken, work)]); // 4.
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #room(key: string, bytes: number, aborted: Promise<never>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const job: Job = { bytes, begin: resolve };
    const queue = this.#waiting.get(key);
    if (queue === undefined) this.#waiting.set(key, [job]);
    else queue.push(job);
    this.#beginWaiting();
    try {
      await Promise.race([aborted, promise]);
    } catch (thrown) {
      if (!this.#unqueue(key, job)) this.#free(key, bytes);
      this.#beginWaiting();
      throw thrown;
    }
  }

  async #occupy<T>(key: string, bytes: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      this.#free(key, bytes);
      this.#beginWaiting();
    }
  }

  /** Takes a job out of its key's queue; false when it has begun. */
  #unqueue(key: string, job: Job): boolean {
    const queue = this.#waiting.get(key);
    const position = queue?.indexOf(job) ?? -1;
    if (queue === undefined || position < 0) return false;
    queue.splice(position, 1);
    if (queue.length === 0) this.#waiting.delete(key);
    return true;
  }

  #free(key: string, bytes: number): void {
    this.#freeBytes += bytes;
    this.#freeJobs++;
    const use = this.#running.get(key);
    if (use === undefined) return;
    use.bytes -= bytes;
    use.jobs--;
    if (use.jobs === 0) this.#running.delete(key);
  }

  #beginWaiting(): void {
    while (this.#beginNext());
  }

  /** Begins the job whose turn it is, if there is one and it has room. */
  #beginNext(): boolean {
    for (const [key, queue] of this.#waiting) {
      const [job] = queue;
      const use = this.#running.get(key) ?? { bytes: 0, jobs: 0 };
      if (job === undefined || use.jobs >= this.#keyJobs || use.bytes + job.bytes > this.#keyBytes) continue; // 2.
      if (this.#freeJobs === 0 || job.bytes > this.#freeBytes) return false; // 2.
      this.#freeJobs--;
      this.#freeBytes -= job.bytes;
      this.#running.set(key, { bytes: use.bytes + job.bytes, jobs: use.jobs + 1 });
      queue.shift();
      // Its next turn comes after those of all others.
      this.#waiting.delete(key);
      if (queue.length > 0) this.#waiting.set(key, queue);
      job.begin();
      return true;
    }
    return false;
  }
}
