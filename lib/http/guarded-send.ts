/**
 * Sends what we have to an address that a caller of this system chose, and reads the beginning of the answer.
 *
 * - Every connection goes only to an address that the guard allows, and TLS is verified.
 * - One call is one request on the wire: no retry, no redirect, no decompression.
 * - It ends at once with its signal, also while a name is being looked up.
 * - At most `maxAnswerBytes` of the answer are kept; the connection of a longer one is closed.
 */
import type { LookupFunction } from "node:net";
import { GuardedSendError } from "./guarded-send-error.ts";
import { createOutboundHttp, type OutboundHttp, type OutboundResponse } from "./outbound-fetch.ts";
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

/** Receivers hear from us now and then: their connections are not kept for longer. */
const keepAliveMs = 4000;

/** Makes a sender; one for each purpose, since the purpose decides which addresses are allowed. */
export function createGuardedSend(options: GuardedSendOptions): GuardedSend {
  const { guard, lookup, maxAnswerBytes, connectTimeoutMs = 5_000 } = options;
  const http = createOutboundHttp({ guard, connectTimeoutMs, keepAliveMs, lookup });
  return {
    send: async (request) => {
      try {
        return await exchange(http, request, maxAnswerBytes);
      } catch (thrown) {
        if (request.signal.aborted) throw new GuardedSendError("aborted", request.signal.reason);
        throw GuardedSendError.from(thrown);
      }
    },
    close: () => http.close(),
  };
}

async function exchange(
  http: OutboundHttp,
  request: GuardedSendRequest,
  maxAnswerBytes: number,
): Promise<GuardedSendAnswer> {
  const url = parseFetchUrl(request.url);
  if (url === undefined) throw new GuardedSendError("url");
  const answer = await http.request({ ...request, url: url.href, takesAnyAnswer: true });
  const { status, headers } = answer;
  return { status, headers, body: await readBeginning(answer, maxAnswerBytes) };
}

/** A refusal is worth having without all of its words; a success is none before its end, or as much of it as is kept. */
async function readBeginning({ status, body }: OutboundResponse, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk.subarray(0, maxBytes - bytes));
      bytes += chunk.length;
      if (bytes > maxBytes) break;
    }
  } catch (thrown) {
    if (status < 300) throw thrown;
  }
  return Buffer.concat(chunks);
}
