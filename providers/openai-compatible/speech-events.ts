import type { ProviderHttpResponse } from "../provider-http.ts";
import { type BegunAudio, decodeAudio } from "../upstream/audio.ts";
import { audioFromEvents } from "../upstream/audio-events.ts";
import { errorFromEvent, isRecord, type Secrets } from "../upstream/failure.ts";
import { speechUsageOf } from "./reported-usage.ts";

interface SpeechEventsOptions {
  /** The member that holds base64 audio, of whatever event; unset: `audio` of the dialect's own event. */
  readonly field: string | undefined;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
  readonly response: ProviderHttpResponse;
}

type SpeechEvent = Readonly<Record<string, unknown>>;

const endMark = "[DONE]";

/** Audio of one answer's events. It ends with the dialect's last event or, after audio, with the bare mark [DONE]. */
export function speechEvents({
  field,
  secrets,
  signal,
  response,
}: SpeechEventsOptions): Pick<BegunAudio, "audio" | "report"> {
  const read = (event: SpeechEvent) => {
    if (isFailure(event)) throw errorFromEvent(event, secrets);
    const encoded = audioIn(event, field);
    const isLast = event.type === "speech.audio.done" || event.type === endMark;
    return {
      audio: encoded === undefined ? undefined : decodeAudio(encoded),
      report: isLast ? speechUsageOf(event) : undefined,
      isLast,
    };
  };
  return audioFromEvents(response, signal, read, { type: endMark });
}

function audioIn(event: SpeechEvent, field: string | undefined): unknown {
  if (event.type === "speech.audio.delta") return event[field ?? "audio"];
  return field === undefined ? undefined : event[field];
}

function isFailure({ type, error }: SpeechEvent): boolean {
  return type === "error" || type === "speech.audio.error" || isRecord(error) || typeof error === "string";
}
