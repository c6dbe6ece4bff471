import { decodeServerSentEvents, type SplitEvent, splitServerSentEvents } from "../../lib/http/sse-decode.ts";
import { ProviderError } from "../contract.ts";
import { isRecord } from "./failure.ts";
import { parseImageJson } from "./image-json.ts";
import { parseJsonObject } from "./send.ts";

/** Longest event, characters. */
const maxEventCharacters = 16 * 1024 * 1024;

/**
 * The objects of a server-sent stream as they come; for the bare word [DONE] that many close with, `doneAs` where it is
 * given, else none.
 */
export async function* jsonEvents(
  body: AsyncIterable<Uint8Array>,
  doneAs?: Readonly<Record<string, unknown>>,
): AsyncGenerator<Readonly<Record<string, unknown>>, undefined> {
  for await (const { data, type } of decodeServerSentEvents(body, maxEventCharacters)) {
    if (data.trim() !== "[DONE]") yield { type, ...parseJsonObject(data) };
    else if (doneAs !== undefined) yield doneAs;
  }
}

/** The same where images are in the events: their bytes stand in place of the base64 under `b64_json`. */
export function imageJsonEvents(
  body: AsyncIterable<Uint8Array>,
  maxEventBytes: number,
): AsyncGenerator<Readonly<Record<string, unknown>>, undefined> {
  return splitServerSentEvents(body, maxEventBytes, parseImageEvent);
}

/** The event's object, its type in it; empty for the bare word. */
function parseImageEvent({ type, data }: SplitEvent): Readonly<Record<string, unknown>> {
  const length = data.reduce((sum, piece) => sum + piece.length, 0);
  if (length < 16 && Buffer.concat(data).toString("latin1").trim() === "[DONE]") return {};
  const event = parseImageJson(data);
  if (isRecord(event)) return { type, ...event };
  throw new ProviderError("bad_answer", "The upstream sent an event that is not a JSON object.");
}
