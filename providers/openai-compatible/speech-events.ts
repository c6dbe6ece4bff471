import { drainBody } from "../../lib/http/read-body.ts";
import { ProviderError, type UpstreamReport } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import { decodeAudio, emptyAnswer } from "../upstream/audio.ts";
import { jsonEvents } from "../upstream/events.ts";
import { errorFromEvent, errorFromTransport, isRecord, type Secrets } from "../upstream/failure.ts";
import { speechUsageOf } from "./reported-usage.ts";

interface AudioEventsOptions {
  /** The member that holds base64 audio, of whatever event; unset: `audio` of the dialect's own event. */
  readonly field: string | undefined;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
  readonly response: ProviderHttpResponse;
}

const drainTimeoutMs = 1_000;
const endMark = "[DONE]";

/** The events of one answer. It ends with the dialect's last event or, after audio, with the bare mark [DONE]. */
export class AudioEvents {
  readonly #options: AudioEventsOptions;
  /** What the last event says. */
  report: UpstreamReport | undefined;

  constructor(options: AudioEventsOptions) {
    this.#options = options;
  }

  async *audio(): AsyncGenerator<Uint8Array, undefined> {
    const { response, signal, secrets } = this.#options;
    const events = jsonEvents(response.body, { type: endMark });
    let isEmpty = true;
    try {
      for (;;) {
        const next = await events.next();
        if (next.done) break;
        const event = next.value;
        if (isFailure(event)) throw errorFromEvent(event, secrets);
        const encoded = this.#audioIn(event);
        const audio = encoded === undefined ? undefined : decodeAudio(encoded);
        if (audio !== undefined && audio.length > 0) {
          isEmpty = false;
          yield audio;
        }
        if (event.type !== "speech.audio.done" && event.type !== endMark) continue;
        if (isEmpty) throw emptyAnswer();
        this.report = speechUsageOf(event);
        await drainBody(events, () => response.cancel(), drainTimeoutMs);
        return;
      }
    } catch (error) {
      throw errorFromTransport(error, signal);
    } finally {
      response.cancel();
    }
    throw new ProviderError("network", "The upstream's stream ended before its last event.");
  }

  #audioIn(event: Readonly<Record<string, unknown>>): unknown {
    const { field } = this.#options;
    if (event.type === "speech.audio.delta") return event[field ?? "audio"];
    return field === undefined ? undefined : event[field];
  }
}

function isFailure({ type, error }: Readonly<Record<string, unknown>>): boolean {
  return type === "error" || type === "speech.audio.error" || isRecord(error) || typeof error === "string";
}
