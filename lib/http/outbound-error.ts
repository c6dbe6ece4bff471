import { errors } from "undici";

const messages = {
  /** No connection was made: nothing was sent. */
  connect: "No connection could be made.",
  /** Headers or the next piece of the body came too late. */
  timeout: "The answer came too late.",
  /** Ended by the request's own signal, or given up by whoever read the answer. */
  aborted: "The request was ended from this side.",
  reset: "The connection broke before the answer was whole.",
  too_large: "The answer is too large.",
  /** The answer is not HTTP as we take it: malformed, compressed unasked, or of unknowable length. */
  protocol: "The answer breaks the HTTP protocol.",
} as const;

/** How an outbound request failed. */
export type OutboundHttpErrorKind = keyof typeof messages;

/** The one error of outbound requests. Its message is fixed by its kind; addresses and details are in `cause` only. */
export class OutboundHttpError extends Error {
  override readonly name = "OutboundHttpError";
  readonly kind: OutboundHttpErrorKind;

  constructor(kind: OutboundHttpErrorKind, cause?: unknown) {
    super(messages[kind], cause === undefined ? undefined : { cause });
    this.kind = kind;
  }

  /** Translates what the HTTP client threw; `wasSent` says whether the request had been put on a connection. */
  static from(error: unknown, wasSent: boolean): OutboundHttpError {
    if (error instanceof OutboundHttpError) return error;
    return new OutboundHttpError(wasSent ? kindOnceSent(error) : "connect", error);
  }
}

function kindOnceSent(error: unknown): OutboundHttpErrorKind {
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError)
    return "timeout";
  if (error instanceof errors.HeadersOverflowError) return "protocol";
  // To the client a chunked body that ends early is input that does not parse; undici gives its parser's code no name.
  if (error instanceof errors.HTTPParserError) return /\bEOF\b/.test(error.message) ? "reset" : "protocol";
  return "reset";
}
