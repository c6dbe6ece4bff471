/**
 * A bounded queue between a source that pushes bytes and one consumer that pulls them.
 *
 * 1. Bytes come out in order, once; a read takes all that is queued, uncopied where that is one chunk.
 * 2. At `highWaterBytes` the source is paused, and resumed by the next read. A source that cannot stop at once may push
 *    on: nothing is dropped.
 * 3. After end() the consumer gets what is queued, then the end; after fail() what is queued, then the error.
 * 4. abandon() drops what is queued: reads fail from then on, a waiting one at once.
 */

interface ByteSource {
  pause(): void;
  resume(): void;
  /** The consumer has left early; called at most once, never after the end. */
  leave(): void;
}

interface WaitingRead {
  resolve(result: IteratorResult<Uint8Array, undefined>): void;
  reject(error: unknown): void;
}

const done: IteratorResult<Uint8Array, undefined> = { done: true, value: undefined };

/** The queue; iterate it once, one read at a time. */
export class ByteQueue implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #source: ByteSource;
  readonly #highWaterBytes: number;
  #chunks: Uint8Array[] = [];
  #queuedBytes = 0;
  #paused = false;
  #waiting: WaitingRead | undefined;
  #closed = false;
  #error: unknown;

  constructor(source: ByteSource, highWaterBytes: number) {
    this.#source = source;
    this.#highWaterBytes = highWaterBytes;
  }

  /** Adds a chunk; empty ones are dropped. */
  push(chunk: Uint8Array): void {
    if (this.#closed || chunk.length === 0) return;
    const waiting = this.#takeWaiting();
    if (waiting !== undefined) {
      waiting.resolve({ done: false, value: chunk });
      return;
    }
    this.#chunks.push(chunk);
    this.#queuedBytes += chunk.length;
    if (this.#queuedBytes >= this.#highWaterBytes && !this.#paused) {
      this.#paused = true;
      this.#source.pause(); // 2.
    }
  }

  end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#takeWaiting()?.resolve(done); // 3.
  }

  fail(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#error = error;
    this.#takeWaiting()?.reject(error);
  }

  /** Whether nothing more comes and nothing is left to be read. */
  get isOver(): boolean {
    return this.#closed && this.#chunks.length === 0;
  }

  /** Nobody wants the rest: what is queued goes, reads fail with `error`. */
  abandon(error: Error): void {
    if (this.isOver) return; // 4.
    this.#closed = true;
    this.#error = error;
    this.#chunks = [];
    this.#queuedBytes = 0;
    this.#takeWaiting()?.reject(error);
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const chunk = this.#takeQueued();
    if (chunk !== undefined) return Promise.resolve({ done: false, value: chunk });
    if (this.#closed) return this.#error === undefined ? Promise.resolve(done) : Promise.reject(this.#error); // 3.
    if (this.#waiting !== undefined) return Promise.reject(new Error("One read at a time."));
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    const early = !this.#closed;
    this.#closed = true;
    this.#error = undefined;
    this.#chunks = [];
    this.#takeWaiting()?.resolve(done);
    if (early) this.#source.leave();
    return Promise.resolve(done);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #takeQueued(): Uint8Array | undefined {
    const [first] = this.#chunks;
    if (first === undefined) return undefined;
    // Small chunks that came together go on together: each frame behind this costs more than the copy.
    const chunk = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#queuedBytes); // 1.
    this.#chunks = [];
    this.#queuedBytes = 0;
    if (this.#paused) {
      this.#paused = false;
      if (!this.#closed) this.#source.resume(); // 2.
    }
    return chunk;
  }

  #takeWaiting(): WaitingRead | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }
}
