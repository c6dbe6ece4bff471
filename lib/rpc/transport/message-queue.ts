/**
 * Messages between a connection that brings them and the one consumer that takes them.
 *
 * 1. They come out in order, once, one read at a time. What has come before an end or a failure comes out before it;
 *    what is cut off fails at once.
 * 2. The connection is asked to stop while `isFull`; `onEmpty` says that it may go on. One that can't stop at once may
 *    bring more: nothing is dropped.
 * 3. There is no `return`: that a consumer has left is said by the call's signal, as over every transport.
 */

/** As much is read ahead, bytes, and what the socket gave at once. */
const readAheadBytes = 64 << 10;

interface Reader<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/** The queue; iterate it once. */
export class MessageQueue<T> implements AsyncIterableIterator<T, undefined> {
  readonly #onEmpty: () => void;
  #messages: T[] = [];
  #bytes = 0;
  #reader: Reader<T> | undefined;
  #closed = false;
  #error: unknown;

  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty;
  }

  get isFull(): boolean {
    return this.#bytes >= readAheadBytes;
  }

  /** Adds a message that weighs so many bytes. */
  push(message: T, bytes: number): void {
    if (this.#closed) return;
    const reader = this.#takeReader();
    if (reader !== undefined) {
      reader.resolve({ done: false, value: message });
      return;
    }
    this.#messages.push(message);
    this.#bytes += bytes;
  }

  end(): void {
    this.#closed = true;
    this.#takeReader()?.resolve({ done: true, value: undefined });
  }

  /** After what has come. */
  fail(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#error = error;
    this.#takeReader()?.reject(error);
  }

  /** At once: what has come is dropped. */
  cutOff(error: Error): void {
    if (this.#closed && this.#messages.length === 0) return;
    this.#messages = [];
    this.#closed = false;
    this.fail(error);
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const message = this.#messages.shift();
    if (message !== undefined) {
      if (this.#messages.length === 0) {
        this.#bytes = 0;
        this.#onEmpty();
      }
      return Promise.resolve({ done: false, value: message });
    }
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#closed) return Promise.resolve({ done: true, value: undefined });
    if (this.#reader !== undefined) return Promise.reject(new Error("one read at a time"));
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #takeReader(): Reader<T> | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }
}
