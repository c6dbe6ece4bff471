/**
 * Frames on their way from the work that makes them to the caller who takes them, one at a time.
 *
 * 1. A frame was taken once the one after it is asked for; only then is `give` over. So the caller's pace is the work's,
 *    and nothing is kept here meanwhile.
 * 2. A caller has left when `caller` is aborted, or its consumer has returned, before the work has ended. From then on
 *    `give` is over at once, its frames are dropped, and the work goes on alone.
 */
export class FrameHandout<F> implements AsyncIterableIterator<F, void> {
  readonly #caller: AbortSignal;
  readonly #leaving = new AbortController();
  readonly #whenLeft: () => Error;
  #taker: PromiseWithResolvers<IteratorResult<F, void>> | undefined;
  #asked: PromiseWithResolvers<void> | undefined;
  #ended = false;
  #failure: { readonly thrown: unknown } | undefined;

  /** `whenLeft` makes the error of whoever still waits for a frame when `caller` is aborted. */
  constructor(caller: AbortSignal, whenLeft: () => Error) {
    this.#caller = caller;
    this.#whenLeft = whenLeft;
    if (caller.aborted) this.#leave();
    else caller.addEventListener("abort", this.#leave, { once: true });
  }

  /** Is aborted, with the reason of the caller's signal, when the caller leaves; never after the end. */
  get left(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Hands a frame out; resolves once it was taken, or at once where nobody is left to take it. One at a time. */
  give(frame: F): Promise<void> {
    if (this.left.aborted) return Promise.resolve(); // 2.
    const taker = this.#taker;
    if (taker === undefined) return this.#whenAsked().then(() => this.give(frame));
    this.#taker = undefined;
    taker.resolve({ done: false, value: frame });
    return this.#whenAsked(); // 1.
  }

  /** No more frames come: the answer is whole. */
  end(): void {
    if (this.#ended) return;
    this.#close();
    this.#taker?.resolve({ done: true, value: undefined });
  }

  /** No more frames come, for this reason. */
  fail(thrown: unknown): void {
    if (this.#ended) return;
    this.#close();
    if (this.#taker === undefined) this.#failure = { thrown };
    else this.#taker.reject(thrown);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next frame. Throws what the work failed with, or that the caller has left. */
  next(): Promise<IteratorResult<F, void>> {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) return Promise.reject(failure.thrown);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    const taker = Promise.withResolvers<IteratorResult<F, void>>();
    this.#taker = taker;
    this.#asked?.resolve();
    this.#asked = undefined;
    return taker.promise;
  }

  /** The caller wants no more. */
  return(): Promise<IteratorResult<F, void>> {
    if (!this.#ended) this.#leave();
    this.#failure = undefined;
    return Promise.resolve({ done: true, value: undefined });
  }

  readonly #leave = () => {
    this.#close();
    this.#leaving.abort(this.#caller.reason);
    this.#asked?.resolve();
    if (this.#taker === undefined) this.#failure = { thrown: this.#whenLeft() };
    else this.#taker.reject(this.#whenLeft());
  };

  #close(): void {
    this.#ended = true;
    this.#caller.removeEventListener("abort", this.#leave);
  }

  #whenAsked(): Promise<void> {
    if (this.#taker !== undefined) return Promise.resolve();
    this.#asked = Promise.withResolvers();
    return this.#asked.promise;
  }
}
