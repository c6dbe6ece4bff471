/**
 * Sends what we have to an address that a caller of this system chose, and reads the beginning of the answer.
 *
 * - Every connection goes only to an address that the guard allows, and TLS is verified.
 * - One call is one request on the wire: no retry, no redirect, no decompression.
 * - It ends at once with its signal, also while a name is being looked up.
 * - At most `maxAnswerBytes` of the answer are kept; the connection of a longer one is closed.
 */
import type { LookupFunction } from "node:net";
import { Agent, type Dispatcher } from "undici";
import { createGuardedConnector } from "./guarded-connector.ts";
import { GuardedSendError } from "./guarded-send-error.ts";
import { joinHeaders } from "./outbound-fetch.ts";
import { type AddressGuard, parseFetchUrl } from "./url-guard.ts";

/** One request. Header names in lower case. */
export interface GuardedSendRequest {
  readonly method: "POST" | "PUT";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** An answer, whatever its status. */
export interface GuardedSendAnswer {
  readonly status: number;
  /** Names in lower case; repeated headers joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** Cut off after `maxAnswerBytes`; where the status is not 2xx, also where the answer broke off. */
  readonly body: Uint8Array;
}

/** Sends requests to addresses that callers chose. */
export interface GuardedSend {
  /** Throws GuardedSendError where there is no answer, or a 2xx one that breaks off. */
  send(request: GuardedSendRequest): Promise<GuardedSendAnswer>;
  /** Closes all connections; running requests fail. */
  close(): Promise<void>;
}

/** Options of createGuardedSend. */
export interface GuardedSendOptions {
  readonly guard: AddressGuard;
  readonly maxAnswerBytes: number;
  /** Longest time to connect, name lookup and TLS included. */
  readonly connectTimeoutMs?: number;
  /** How names become addresses; the system's own way unless given. */
  readonly lookup?: LookupFunction;
}

/** Makes a sender; one for each purpose, since the purpose decides which addresses are allowed. */
export function createGuardedSend(options: GuardedSendOptions): GuardedSend {
  const { guard, lookup, maxAnswerBytes, connectTimeoutMs = 5_000 } = options;
  const agent = new Agent({
    allowH2: false,
    pipelining: 1,
    connect: createGuardedConnector(guard, { timeoutMs: connectTimeoutMs, lookup }),
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    send: async (request) => {
      try {
        return await exchange(agent, request, maxAnswerBytes);
      } catch (thrown) {
        if (request.signal.aborted) throw new GuardedSendError("aborted", request.signal.reason);
        throw GuardedSendError.from(thrown);
      }
    },
    close: () => agent.destroy(),
  };
}

async function exchange(
  agent: Agent,
  request: GuardedSendRequest,
  maxAnswerBytes: number,
): Promise<GuardedSendAnswer> {
  const { method, body, signal } = request;
  const url = parseFetchUrl(request.url);
  if (url === undefined) throw new GuardedSendError("url");
  signal.throwIfAborted();
  const ended = Promise.withResolvers<never>();
  const onAbort = () => ended.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    const answered = agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers: { "user-agent": "media-gateway", ...request.headers, "accept-encoding": "identity" },
      body,
      signal,
    });
    // The client itself hears of the signal only once it is connected.
    const answer = await Promise.race([answered, ended.promise]);
    return {
      status: answer.statusCode,
      headers: joinHeaders(answer.headers),
      body: await readBeginning(answer, maxAnswerBytes),
    };
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** A refusal is worth having without all of its words; a success is none before its end, or as much of it as is kept. */
async function readBeginning(
  { statusCode, body }: Dispatcher.ResponseData,
  maxBytes: number,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      chunks.push(chunk.subarray(0, maxBytes - bytes));
      bytes += chunk.length;
      if (bytes > maxBytes) break;
    }
  } catch (thrown) {
    if (statusCode < 300) throw thrown;
  }
  return Buffer.concat(chunks);
}
