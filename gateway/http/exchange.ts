import type { IncomingMessage, ServerResponse } from "node:http";
import { createContextValues } from "@connectrpc/connect";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { actingForKey } from "../../lib/identity/caller.ts";
import { admissionIdKey } from "../../lib/rate-limit/admission-id.ts";
import { requestIdKey } from "../../lib/rpc/request-context.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { type Span, silentSpan, spanKey } from "../../lib/runtime/span.ts";
import type { ErrorBody, Operation } from "./error-body.ts";

/** One request and its answer, and what is known of them so far; ends with the response's `close`. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Names the request in the answer, in logs and in calls to services. */
  readonly requestId: string;
  /** When it began, monotonic milliseconds. */
  readonly startedMs: number;
  /** The route's pattern; empty until one is found. */
  route = "";
  operation: Operation = "unrouted";
  /** Its span; silent until a route is found, and where it is not recorded. */
  span: Span = silentSpan;
  /** Who asks; undefined until the key is known. */
  principal: Principal | undefined;
  /** Names it where it counts as in flight; undefined before it does. */
  admissionId: string | undefined;
  /** Empty until a service names it. */
  generationId = "";
  /** Why the request was refused or failed, a word of the closed list; empty when it was not. */
  reason = "";
  /** When the first byte of the answer's body was handed to the connection, monotonic; undefined before. */
  firstByteMs: number | undefined;
  /** Whether the client waits for `100 Continue` before it sends its body. */
  awaitsContinue = false;
  /** The parts of the path that the route's pattern names. */
  parameters: Readonly<Record<string, string>> = {};
  /** Reports an error in an answer that has begun and ends it; false when it can't. Without it, such an answer is cut. */
  failInBand: ((body: ErrorBody) => boolean) | undefined;
  #gone: AbortController | undefined;
  readonly #clock: Clock;
  #bytesSent = 0;

  constructor(request: IncomingMessage, response: ServerResponse, requestId: string, clock: Clock) {
    this.request = request;
    this.response = response;
    this.requestId = requestId;
    this.startedMs = clock.monotonicMs();
    this.#clock = clock;
  }

  /** Bytes of the answer's body that were handed to the connection. */
  get bytesSent(): number {
    return this.#bytesSent;
  }

  set bytesSent(bytes: number) {
    this.firstByteMs ??= this.#clock.monotonicMs();
    this.#bytesSent = bytes;
  }

  /** The query of the request's target. */
  get query(): URLSearchParams {
    const url = this.request.url ?? "";
    const start = url.indexOf("?");
    return new URLSearchParams(start < 0 ? "" : url.slice(start + 1));
  }

  /** Aborted when the connection closes before the answer is complete. */
  get clientGone(): AbortSignal {
    if (this.#gone !== undefined) return this.#gone.signal;
    const gone = new AbortController();
    this.#gone = gone;
    const { response } = this;
    if (response.destroyed) gone.abort();
    response.once("close", () => {
      if (!response.writableFinished) gone.abort();
    });
    return gone.signal;
  }

  /** Whether the client announced a body that has not arrived whole. */
  get bodyIsPending(): boolean {
    const { complete, headers } = this.request;
    if (complete) return false;
    return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  }

  /** What calls to services carry: the request's id, its span and for whom they are made. */
  callContext() {
    return createContextValues()
      .set(requestIdKey, this.requestId)
      .set(spanKey, this.span)
      .set(actingForKey, this.principal)
      .set(admissionIdKey, this.admissionId);
  }
}
