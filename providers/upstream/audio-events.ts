import { drainBody } from "../../lib/http/read-body.ts";
import { ProviderError, type SpeechAnswer, type SpeechCall, type UpstreamReport } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import { type BegunAudio, emptyAnswer, mediaTypeOf, speechAnswer } from "./audio.ts";
import { jsonEvents } from "./events.ts";
import { errorFromTransport } from "./failure.ts";
import { refuse } from "./send.ts";

/** What one event of an answer tells, if anything. */
export interface AudioEvent {
  readonly audio?: Uint8Array | undefined;
  readonly report?: UpstreamReport | undefined;
  /** Whether the answer is whole with it. */
  readonly isLast?: boolean;
}

/** Reads an event; `hasAudio` tells whether one before it had any. Throws ProviderError for one that tells of a failure. */
export type ReadAudioEvent = (event: Readonly<Record<string, unknown>>, hasAudio: boolean) => AudioEvent;

const drainTimeoutMs = 1_000;

/**
 * Audio that comes in server-sent events of one JSON object each, one buffer an event. It is whole with its last event; any
 * other end throws ProviderError. For the bare word [DONE] `read` is given `doneAs`, unless that is left out.
 */
export function audioFromEvents(
  response: ProviderHttpResponse,
  signal: AbortSignal,
  read: ReadAudioEvent,
  doneAs?: Readonly<Record<string, unknown>>,
): Required<Pick<BegunAudio, "audio" | "report">> {
  let reported: UpstreamReport | undefined;
  async function* play(): AsyncGenerator<Uint8Array, undefined> {
    const events = jsonEvents(response.body, doneAs);
    let hasAudio = false;
    try {
      // Not `for await`: what follows the last event is drained, so that the connection can be used again.
      for (;;) {
        const next = await events.next();
        if (next.done) break;
        const { audio, report, isLast = false } = read(next.value, hasAudio);
        reported = report ?? reported;
        if (audio !== undefined && audio.length > 0) {
          hasAudio = true;
          yield audio;
        }
        if (!isLast) continue;
        if (!hasAudio) throw emptyAnswer();
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
  return { audio: play(), report: () => reported };
}

/** The answer that is audio in events. Throws ProviderError, also where its headers say that it is something else. */
export async function answerOfEvents(
  response: ProviderHttpResponse,
  call: Pick<SpeechCall, "format" | "sampleRateHz" | "channels">,
  signal: AbortSignal,
  read: ReadAudioEvent,
): Promise<SpeechAnswer> {
  if (!isEventStream(response)) throw refuse(response);
  const { format, sampleRateHz, channels } = call;
  const shape = { sampleRateHz, channels };
  return await speechAnswer({ format, shape, response, ...audioFromEvents(response, signal, read) });
}

/** Whether an answer's headers say that it is server-sent events. */
export function isEventStream({ headers }: Pick<ProviderHttpResponse, "headers">): boolean {
  return mediaTypeOf(headers).startsWith("text/event-stream");
}
