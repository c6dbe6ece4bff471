import { createParser } from "eventsource-parser";

/** One server-sent event. */
export interface ServerSentEvent {
  /** The `event` field; "message" where it is missing. */
  readonly type: string;
  /** The `data` lines, joined by line feeds. */
  readonly data: string;
  /** The event's own `id` field. */
  readonly id: string | undefined;
}

/** An event grew past the limit before it ended. */
export class OversizedEventError extends Error {
  override readonly name = "OversizedEventError";

  constructor() {
    super("A server-sent event is too large.");
  }
}

/**
 * Decodes an event stream (WHATWG HTML, "Server-sent events") as its bytes arrive; what stands before the first blank
 * line at the end of the input is no event. Throws OversizedEventError past `maxEventCharacters`, and what `bytes` throws.
 */
export async function* decodeServerSentEvents(
  bytes: AsyncIterable<Uint8Array>,
  maxEventCharacters: number,
): AsyncGenerator<ServerSentEvent, undefined> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let events: ServerSentEvent[] = [];
  let oversized = false;
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent: ({ event, data, id }) => {
      events.push({ type: event ?? "message", data, id });
    },
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") oversized = true;
    },
  });
  for await (const chunk of bytes) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (events.length > 0) {
      const ready = events;
      events = [];
      yield* ready;
    }
    if (oversized) throw new OversizedEventError();
  }
}
