/**
 * Fetches what a URL of the caller's choice names, whole, into memory.
 *
 * - Every connection, those after a redirect included, goes only to an address that the guard allows.
 * - Bytes are counted as they arrive, and are what is handed on: nothing is decompressed, an encoded answer is refused.
 * - Ending early, for whatever reason, closes the connection at once.
 * - In however small pieces content comes, it is kept in one buffer, which grows to at most twice what has come; what
 *   is only announced takes no room.
 */
import type { LookupFunction } from "node:net";
import { OutboundHttpError } from "./outbound-error.ts";
import { createOutboundHttp, type OutboundHttp, type OutboundResponse } from "./outbound-fetch.ts";
import { type AddressGuard, AddressRefusedError, parseFetchUrl } from "./url-guard.ts";

const messages = {
  /** Not an http(s) URL, or one with credentials; also where a redirect leads to such. */
  url: "The URL is not one that may be fetched.",
  /** The URL, or a redirect, leads to an address that is not allowed. */
  address: "The URL leads to an address that may not be connected to.",
  too_large: "The content is too large.",
  timeout: "The content came too late.",
  /** Ended by the request's own signal. */
  aborted: "The fetch was ended from this side.",
  /** Anything else: no connection, a status that is not 200, too many redirects, an answer that is not whole. */
  failed: "The content could not be fetched.",
} as const;

/** How a guarded fetch failed. */
export type GuardedFetchErrorKind = keyof typeof messages;

/** The one error of guarded fetches. Its message is fixed by its kind; details are in `cause` only. */
export class GuardedFetchError extends Error {
  override readonly name = "GuardedFetchError";
  readonly kind: GuardedFetchErrorKind;

  constructor(kind: GuardedFetchErrorKind, cause?: unknown) {
    super(messages[kind], cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

/** What to fetch and how much of it. */
export interface GuardedFetchRequest {
  readonly url: string;
  /** The `accept` header; any content unless given. */
  readonly accept?: string;
  readonly signal: AbortSignal;
  /** Longest time in all, redirects included. */
  readonly timeoutMs: number;
  /** Longest content, bytes. */
  readonly maxBytes: number;
  /**
   * Hears of every piece of content, bytes, before it is kept; false ends the fetch as too large. Nothing more is read
   * until it has answered. What it throws ends the fetch as failed, or as its signal says.
   */
  take?(bytes: number): boolean | Promise<boolean>;
}

interface FetchedContent {
  readonly bytes: Uint8Array;
  /** As the server says, which proves nothing; undefined when it says nothing. */
  readonly contentType: string | undefined;
}

/** Fetches. */
export interface GuardedFetch {
  /** GETs a URL, following redirects. Throws GuardedFetchError. */
  fetch(request: GuardedFetchRequest): Promise<FetchedContent>;
  /** Closes all connections; running fetches fail. */
  close(): Promise<void>;
}

/** Options of createGuardedFetch. */
export interface GuardedFetchOptions {
  readonly guard: AddressGuard;
  /** Longest time to connect, name lookup and TLS included. */
  readonly connectTimeoutMs?: number;
  /** Longest wait for the headers of one answer. */
  readonly headersTimeoutMs?: number;
  /** Longest silence between two pieces of content. */
  readonly idleTimeoutMs?: number;
  readonly maxRedirects?: number;
  /** How names become addresses; the system's own way unless given. */
  readonly lookup?: LookupFunction;
  /** Authorities to trust, PEM, in place of the system's. */
  readonly ca?: readonly string[] | undefined;
}

/** What the first piece of content is kept in at least, as far as so much is to come. */
const firstBytes = 64 * 1024;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Makes a fetch; one for each purpose, since the purpose decides which addresses are allowed. */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { guard, lookup, ca, connectTimeoutMs = 3_000 } = options;
  const http = createOutboundHttp({ guard, connectTimeoutMs, lookup, ca });
  return {
    async fetch(request) {
      const deadline = AbortSignal.timeout(request.timeoutMs);
      const signal = AbortSignal.any([request.signal, deadline]);
      try {
        const answer = await follow(http, options, { ...request, signal });
        const bytes = await readAll(answer, request);
        return { bytes, contentType: answer.headers["content-type"] };
      } catch (thrown) {
        if (request.signal.aborted) throw new GuardedFetchError("aborted", request.signal.reason);
        if (deadline.aborted) throw new GuardedFetchError("timeout", deadline.reason);
        throw translate(thrown);
      }
    },
    close: () => http.close(),
  };
}

/** The answer at the end of the redirects, its content still to come. */
async function follow(
  http: OutboundHttp,
  { headersTimeoutMs = 5_000, idleTimeoutMs = 5_000, maxRedirects = 3 }: GuardedFetchOptions,
  { url: start, accept = "*/*", signal, maxBytes }: GuardedFetchRequest,
): Promise<OutboundResponse> {
  let url = parseFetchUrl(start);
  for (let redirects = 0; ; redirects++) {
    if (url === undefined) throw new GuardedFetchError("url");
    const answer = await http.request({
      method: "GET",
      url: url.href,
      headers: { accept },
      signal,
      headersTimeoutMs,
      idleTimeoutMs,
      maxResponseBytes: maxBytes,
    });
    if (answer.status === 200) return answer;
    answer.cancel();
    const target = answer.headers.location;
    if (!redirectStatuses.has(answer.status) || target === undefined || redirects === maxRedirects) {
      throw new GuardedFetchError("failed", `status ${answer.status} after ${redirects} redirects`);
    }
    url = parseFetchUrl(target, url);
  }
}

async function readAll(
  answer: OutboundResponse,
  { take, maxBytes }: GuardedFetchRequest,
): Promise<Uint8Array> {
  let content: Buffer<ArrayBuffer> = Buffer.alloc(0);
  let length = 0;
  for await (const chunk of answer.body) {
    if (take !== undefined && !(await take(chunk.length))) throw new GuardedFetchError("too_large");
    if (length + chunk.length > content.length) {
      const announced = Number(answer.headers["content-length"] ?? maxBytes);
      const doubled = Math.max(2 * length, length + chunk.length, firstBytes);
      content = grow(content, length, Math.max(length + chunk.length, Math.min(doubled, announced)));
    }
    content.set(chunk, length);
    length += chunk.length;
  }
  return content.subarray(0, length);
}

function grow(content: Buffer, length: number, newLength: number): Buffer<ArrayBuffer> {
  const grown = Buffer.allocUnsafeSlow(newLength);
  grown.set(content.subarray(0, length));
  return grown;
}

function translate(thrown: unknown): GuardedFetchError {
  if (thrown instanceof GuardedFetchError) return thrown;
  if (!(thrown instanceof OutboundHttpError)) return new GuardedFetchError("failed", thrown);
  if (thrown.cause instanceof AddressRefusedError) return new GuardedFetchError("address", thrown);
  if (thrown.kind === "too_large" || thrown.kind === "timeout")
    return new GuardedFetchError(thrown.kind, thrown);
  return new GuardedFetchError("failed", thrown);
}
