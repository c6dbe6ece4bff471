import { Code, ConnectError } from "@connectrpc/connect";

/** What cuts a call off: the error that it ends with here, and the reason that signals get. */
export interface Cut {
  readonly error: ConnectError;
  readonly reason: unknown;
}

/**
 * What bounds a call from its caller's side: a deadline and a signal. Whichever comes first cuts it off, unless it has
 * ended. A call that ends well costs one timer: no AbortController, and no error.
 */
export class CallBounds {
  readonly #caller: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  #controller: AbortController | undefined;
  #onCut: ((cut: Cut) => void) | undefined;
  #cut: Cut | undefined;
  #ended = false;

  /** How long the call may take from its beginning, milliseconds. */
  readonly timeoutMs: number | undefined;

  constructor(caller: AbortSignal | undefined, timeoutMs: number | undefined) {
    this.#caller = caller;
    this.timeoutMs = timeoutMs;
    if (caller?.aborted) {
      this.handleEvent();
      return;
    }
    caller?.addEventListener("abort", this);
    if (timeoutMs !== undefined) this.#timer = setTimeout(CallBounds.#timedOut, timeoutMs, this);
  }

  /** Undefined unless the call was cut off. */
  get cut(): Cut | undefined {
    return this.#cut;
  }

  /** Is aborted when the call is cut off; made when it is asked for. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cut !== undefined) this.#controller.abort(this.#cut.reason);
    }
    return this.#controller.signal;
  }

  /** Tells one listener when the call is cut off; at once where it is already. */
  whenCut(listener: (cut: Cut) => void): void {
    if (this.#cut === undefined) this.#onCut = listener;
    else listener(this.#cut);
  }

  /** The error of a call that failed: that of the cut where there was one. What is still open of the call is cut off. */
  failWith(thrown: unknown): ConnectError {
    const error = this.#cut?.error ?? ConnectError.from(thrown);
    this.#cutOff(error, error);
    return error;
  }

  /** Nothing of the call is open any more: it can't be cut off. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this);
  }

  /** As a listener of the caller's signal. */
  handleEvent(): void {
    const reason: unknown = this.#caller?.reason;
    this.#cutOff(reason, ConnectError.from(reason, Code.Canceled));
  }

  static #timedOut(bounds: CallBounds): void {
    const error = new ConnectError("the operation timed out", Code.DeadlineExceeded);
    bounds.#cutOff(error, error);
  }

  /** The first reason counts. */
  #cutOff(reason: unknown, error: ConnectError): void {
    if (this.#ended) return;
    this.end();
    this.#cut = { error, reason };
    this.#controller?.abort(reason);
    this.#onCut?.(this.#cut);
  }
}
