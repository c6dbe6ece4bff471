/**
 * The one way out to upstreams over HTTP/1.1. Owns the connections, kept alive between requests.
 *
 * - One call is one request on the wire: no retry, no redirect, no decompression.
 * - Aborting, cancelling or leaving the body early closes the connection at once; so does every failure.
 * - The body ends only where the answer is whole. A successful answer that states neither a length nor chunks is
 *   refused, because its end looks like a break.
 * - At most `readAheadBytes` wait for a slow reader (and one socket read more); then the socket is not read.
 * - Bytes are handed on in the buffers that the socket filled.
 */
import type { LookupFunction } from "node:net";
import { Agent, type Dispatcher } from "undici";
import { ByteQueue } from "./byte-queue.ts";
import { createGuardedConnector } from "./guarded-connector.ts";
import { OutboundHttpError } from "./outbound-error.ts";
import type { AddressGuard } from "./url-guard.ts";

/** One request. Header names in lower case. */
export interface OutboundRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Pieces go out one after another, uncopied, with their length stated; they must not change until the answer is in. */
  readonly body?: string | Uint8Array | readonly Uint8Array[];
  readonly signal: AbortSignal;
  /** Longest wait for the headers once the request is on the wire; above 1 s it is checked each half second. */
  readonly headersTimeoutMs?: number;
  /** Longest silence between two pieces of the body; time in which the reader is behind does not count. */
  readonly idleTimeoutMs?: number;
  /** Longest body, bytes. */
  readonly maxResponseBytes?: number;
  /** Takes also an answer that is compressed unasked, or whose end looks like a break. */
  readonly takesAnyAnswer?: boolean;
  /**
   * Called once when the last byte of the request has been written to the connection; never where none was made. It may
   * still wait in this machine's buffers then, so what is reported may not have arrived, never the other way round.
   */
  readonly onSent?: () => void;
}

/** An answer whose body is still to come: consume it to its end or cancel it. */
export interface OutboundResponse {
  readonly status: number;
  /** Names in lower case; repeated headers joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** Pieces of at least one byte as they arrive; may be consumed once. Throws OutboundHttpError. */
  readonly body: AsyncIterableIterator<Uint8Array, undefined>;
  /** Closes the connection; a waiting or later read fails with kind aborted. Nothing happens after the end. */
  cancel(): void;
}

/** Makes requests. */
export interface OutboundHttp {
  /** Resolves with the headers of the final answer, whatever its status. Throws OutboundHttpError. */
  request(request: OutboundRequest): Promise<OutboundResponse>;
  /** Closes all connections; running requests fail. */
  close(): Promise<void>;
}

interface OutboundHttpOptions {
  /** Longest time to connect, TLS included. */
  readonly connectTimeoutMs?: number;
  /** How long an idle connection is kept where the server names no time of its own. */
  readonly keepAliveMs?: number;
  /**
   * Which addresses may be connected to; all without it. A refused one fails with kind connect and an
   * AddressRefusedError as its cause.
   */
  readonly guard?: AddressGuard;
  /** How names become addresses, with a guard; the system's own way without. */
  readonly lookup?: LookupFunction | undefined;
  /** Authorities to trust, PEM, with a guard; the system's without. */
  readonly ca?: readonly string[] | undefined;
}

const readAheadBytes = 64 * 1024;
const longestKeepAliveMs = 60_000;

/** Makes the client; a process needs one. */
export function createOutboundHttp(options: OutboundHttpOptions = {}): OutboundHttp {
  const { guard, lookup, ca, connectTimeoutMs = 5_000 } = options;
  const agent = new Agent({
    allowH2: false,
    pipelining: 1,
    connect:
      guard === undefined
        ? { timeout: connectTimeoutMs }
        : createGuardedConnector(guard, { timeoutMs: connectTimeoutMs, lookup, ca }),
    keepAliveTimeout: options.keepAliveMs ?? 15_000,
    keepAliveMaxTimeout: longestKeepAliveMs,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    request: (request) =>
      new Promise((resolve, reject) => {
        if (request.signal.aborted) {
          reject(new OutboundHttpError("aborted", request.signal.reason));
          return;
        }
        const url = URL.parse(request.url);
        if (url === null) {
          reject(new OutboundHttpError("connect", "not a URL"));
          return;
        }
        agent.dispatch(
          {
            origin: url.origin,
            path: url.pathname + url.search,
            method: request.method,
            headers: {
              "user-agent": "media-gateway",
              ...request.headers,
              ...lengthOf(request.body),
              "accept-encoding": "identity",
            },
            body: toDispatchBody(request.body),
            headersTimeout: Math.ceil(request.headersTimeoutMs ?? 0),
            bodyTimeout: Math.ceil(request.idleTimeoutMs ?? 0),
          },
          new Exchange(request, resolve, reject),
        );
      }),
    close: () => agent.destroy(),
  };
}

/** Of pieces: the client knows the length of everything else itself. */
function lengthOf(body: OutboundRequest["body"]): Record<string, string> {
  if (typeof body !== "object" || body instanceof Uint8Array) return {};
  return { "content-length": String(body.reduce((sum, { length }) => sum + length, 0)) };
}

/** The client takes any iterable of bytes, writes one piece at a time and waits for room; its types name only some. */
function toDispatchBody(body: OutboundRequest["body"]): string | Uint8Array | null {
  return (body ?? null) as string | Uint8Array | null;
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: OutboundRequest;
  readonly #resolve: (response: OutboundResponse) => void;
  readonly #reject: (error: OutboundHttpError) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #queue: ByteQueue | undefined;
  #receivedBytes = 0;
  #stopped: OutboundHttpError | undefined;
  #ended = false;

  constructor(
    request: OutboundRequest,
    resolve: (response: OutboundResponse) => void,
    reject: (error: OutboundHttpError) => void,
  ) {
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    request.signal.addEventListener("abort", this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#stopped !== undefined) controller.abort(this.#stopped);
  }

  onRequestSent(): void {
    this.#request.onSent?.();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    rawHeaders: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    const headers = joinHeaders(rawHeaders);
    const refusal = this.#refusal(status, headers);
    if (refusal !== undefined) {
      this.#stop(refusal);
      return;
    }
    const queue = new ByteQueue(
      {
        pause: () => controller.pause(),
        resume: () => controller.resume(),
        leave: () => this.#stop(new OutboundHttpError("aborted")),
      },
      readAheadBytes,
    );
    this.#queue = queue;
    const cancel = () => {
      // After every answer, of which most were read to their end: an error for each would cost more than the request.
      if (queue.isOver) return;
      const error = new OutboundHttpError("aborted");
      queue.abandon(error);
      this.#stop(error);
    };
    this.#resolve({ status, headers, body: queue, cancel });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > (this.#request.maxResponseBytes ?? Number.POSITIVE_INFINITY)) {
      this.#stop(new OutboundHttpError("too_large"));
    } else {
      this.#queue?.push(chunk);
    }
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#request.signal.removeEventListener("abort", this.#onAbort);
    this.#queue?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#ended = true;
    this.#request.signal.removeEventListener("abort", this.#onAbort);
    const failure = OutboundHttpError.from(error, this.#controller !== undefined);
    this.#queue?.fail(failure);
    this.#reject(failure);
  }

  readonly #onAbort = (): void => {
    const error = new OutboundHttpError("aborted", this.#request.signal.reason);
    this.#queue?.abandon(error);
    this.#stop(error);
  };

  /** Ends the exchange from this side; the first reason counts. */
  #stop(error: OutboundHttpError): void {
    if (this.#ended || this.#stopped !== undefined) return;
    this.#stopped = error;
    this.#request.signal.removeEventListener("abort", this.#onAbort);
    this.#queue?.fail(error);
    this.#reject(error);
    this.#controller?.abort(error);
  }

  #refusal(status: number, headers: Readonly<Record<string, string>>): OutboundHttpError | undefined {
    if (this.#request.takesAnyAnswer) return undefined;
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity") {
      return new OutboundHttpError("protocol", `content-encoding ${encoding}`);
    }
    const length = headers["content-length"];
    const limit = this.#request.maxResponseBytes;
    if (limit !== undefined && Number(length) > limit) return new OutboundHttpError("too_large");
    const isFramed = length !== undefined || headers["transfer-encoding"] !== undefined || status === 204;
    if (status < 300 && !isFramed) return new OutboundHttpError("protocol", "neither length nor chunks");
    return undefined;
  }
}

function joinHeaders(raw: Record<string, string | string[] | undefined>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name in raw) {
    const value = raw[name];
    if (value !== undefined) headers[name] = typeof value === "string" ? value : value.join(", ");
  }
  return headers;
}
