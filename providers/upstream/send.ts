import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { ProviderError } from "../contract.ts";
import type { ProviderHttp, ProviderHttpRequest, ProviderHttpResponse } from "../provider-http.ts";
import {
  type ErrorMeanings,
  type ErrorPhrases,
  errorFromAnswer,
  errorFromTransport,
  isRecord,
  type Secrets,
} from "./failure.ts";

/** What is known of an upstream's failures. */
export interface Failures {
  readonly secrets: Secrets;
  readonly meanings?: ErrorMeanings | undefined;
  readonly phrases?: ErrorPhrases | undefined;
  /** Wall clock, for a Retry-After that names a date. */
  readonly nowMs?: (() => number) | undefined;
}

/** Sends one request; resolves with the headers of an answer of status 200 or another one named. Throws ProviderError. */
export async function send(
  http: ProviderHttp,
  request: ProviderHttpRequest,
  { secrets, meanings, phrases, nowMs = Date.now }: Failures,
  successes: readonly number[] = [],
): Promise<ProviderHttpResponse> {
  let response: ProviderHttpResponse;
  try {
    response = await http.request(request);
  } catch (error) {
    throw errorFromTransport(error, request.signal);
  }
  if (response.status === 200 || successes.includes(response.status)) return response;
  throw await errorFromAnswer(response, nowMs(), secrets, meanings, phrases);
}

/** Gives an answer up whose headers say that it is not what was asked for. */
export function refuse(response: ProviderHttpResponse): ProviderError {
  response.cancel();
  return new ProviderError("bad_answer", "The upstream's answer is not what was asked for.", {
    status: response.status,
    cause: response.headers["content-type"],
  });
}

/** An answer whole, as one JSON object of at most so many bytes. Throws ProviderError. */
export async function readJsonObject(
  response: ProviderHttpResponse,
  signal: AbortSignal,
  maxBytes: number,
): Promise<Readonly<Record<string, unknown>>> {
  return parseJsonObject((await readBytes(response, signal, maxBytes)).toString("utf8"));
}

/** An answer whole, of at most so many bytes. Throws ProviderError. */
export async function readBytes(
  response: ProviderHttpResponse,
  signal: AbortSignal,
  maxBytes: number,
): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    // Ends the answer wherever it is left.
    for await (const piece of response.body) {
      bytes += piece.length;
      if (bytes > maxBytes) throw new OutboundHttpError("too_large");
      pieces.push(piece);
    }
  } catch (error) {
    throw errorFromTransport(error, signal);
  }
  return Buffer.concat(pieces);
}

/** The object that a text is the JSON of. Throws ProviderError, which quotes nothing of it. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {
    // The parser's own words would quote the text.
  }
  throw new ProviderError("bad_answer", "The upstream sent something that is not a JSON object.");
}
