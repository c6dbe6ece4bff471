/** One request to an upstream. Header names in lower case. */
export interface ProviderHttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Leave out for a request without a body. Pieces go out one after another, uncopied, with their length stated. */
  readonly body?: string | Uint8Array | readonly Uint8Array[];
  /** Ends the request, its answer's body included, and closes its connection. */
  readonly signal: AbortSignal;
  /** Longest wait for the status line and headers; without it only `signal` bounds the wait. */
  readonly headersTimeoutMs?: number;
  /** Longest silence between two pieces of the body; without it only `signal` bounds it. */
  readonly idleTimeoutMs?: number;
  /** Longest body, bytes; a longer one fails. Unbounded without it. */
  readonly maxResponseBytes?: number;
  /** Called once when the last byte of the request has been handed to the connection; never where none was made. */
  readonly onSent?: () => void;
}

/** An upstream's answer, its body still to come. Every answer must be consumed to its end or cancelled. */
export interface ProviderHttpResponse {
  readonly status: number;
  /** Names in lower case; a header sent more than once has its values joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** Pieces of at least one byte, as they arrive; ends only where the answer is whole. May be consumed once. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives up the rest of the body and closes the connection at once; does nothing after its end. */
  cancel(): void;
}

/**
 * The one way to an upstream: one request, no retry, no redirect followed, the answer as sent (identity encoding). What
 * it throws is an OutboundHttpError (lib/http), never a ProviderError: adapters translate.
 */
export interface ProviderHttp {
  request(request: ProviderHttpRequest): Promise<ProviderHttpResponse>;
}

/** A websocket to an upstream that is only listened to. Header names in lower case. */
export interface ProviderWebSocketRequest {
  /** http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Ends it, also before it is open. */
  readonly signal: AbortSignal;
  /** Longest message, bytes; a longer one ends it. */
  readonly maxMessageBytes: number;
  /** Hears every message whole, in order: text as a string, anything else as bytes. Nothing waits for it. */
  onMessage(message: string | Uint8Array): void;
}

/** An open websocket. */
export interface ProviderWebSocket {
  /** Resolves when it has ended, for whatever reason. */
  readonly closed: Promise<void>;
  /** Ends it at once. */
  close(): void;
}

/** Opens a websocket: no redirect, no second try. Throws OutboundHttpError. */
export type OpenWebSocket = (request: ProviderWebSocketRequest) => Promise<ProviderWebSocket>;

/** An answer's address and how much may lie there. */
export interface ResultRequest {
  readonly url: string;
  readonly signal: AbortSignal;
  /** Longest content, bytes. */
  readonly maxBytes: number;
}

/**
 * Fetches what an upstream answered an address of, whole: without any credential of ours, and only from where the provider
 * itself lies or from public addresses. Throws ProviderError.
 */
export type FetchResult = (request: ResultRequest) => Promise<Uint8Array>;

/** Where a provider that an operator has described may lie. */
export interface ProviderNetwork {
  /** Whether at private addresses, too, loopback included. */
  readonly privateAddress: boolean;
  /** A PEM file of authorities that are trusted besides the system's. */
  readonly caFile?: string | undefined;
}
