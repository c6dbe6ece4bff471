/**
 * What the stand-ins for vendors of speech share, whether they answer with the audio itself, with events or with an object
 * that hold it; what differs is how a request is read, how the answer is worded and how a request is refused.
 */

import { behaviourOfMarker, type ErrorBehaviour, type SpeechBehaviour } from "../openai/openai-behaviour.ts";
import {
  type AudioEventWords,
  answerWithAudio,
  answerWithEvents,
  wholeAudio,
} from "../openai/openai-speech.ts";
import { type AudioSource, createAudioSource, type SourceFormat } from "./audio-source.ts";
import { type ReceivedRequest, type StandIn, type StandInAnswer, startStandIn } from "./stand-in-server.ts";

/** What a request asks for, once the vendor has no objection. */
export interface SpokenText {
  readonly input: string;
  readonly format: SourceFormat;
  /** Of the answer, its content type among them. */
  readonly headers: Readonly<Record<string, string>>;
  /** What stands before the audio, such as the header of a WAV; a behaviour counts its bytes as audio. */
  readonly head?: Uint8Array;
  /** Where the audio comes in events: their words. */
  readonly events?: AudioEventWords;
  /** Where all of it comes in one object: that object. */
  readonly object?: (audio: Buffer) => object;
}

/** A refusal as the vendor sends it. */
export interface SpeechRefusal {
  readonly status: number;
  readonly body: object;
}

/** One vendor's wire. */
export interface RawSpeechWire {
  /** Checks a request as the vendor documents it. */
  read(request: ReceivedRequest, apiKey: string): SpokenText | SpeechRefusal;
  /** The vendor's error body for a status. */
  refusal(behaviour: ErrorBehaviour): SpeechRefusal;
}

/** How a stand-in for speech is started. */
export interface SpeechUpstreamOptions {
  port?: number;
  /** Whether requests are kept; off for load. */
  log?: boolean;
  /** The key that it knows; "test-key" by default. */
  apiKey?: string;
  /** Chooses by request where nothing is queued; undefined falls through to markers and plain audio. */
  behave?: (spoken: { readonly input: string }) => SpeechBehaviour | undefined;
}

/** A running stand-in for speech. */
export interface SpeechUpstream extends StandIn {
  /** Queues behaviours for the next valid requests, one each; they come before everything else. */
  next(...behaviours: SpeechBehaviour[]): void;
}

/** Starts one. The behaviour of a valid request: queued, else `behave`, else its marker, else audio in a burst. */
export async function startRawSpeech(
  wire: RawSpeechWire,
  { apiKey = "test-key", behave, ...server }: SpeechUpstreamOptions,
): Promise<SpeechUpstream> {
  const queued: SpeechBehaviour[] = [];
  const sources = { mp3: createAudioSource("mp3"), pcm: createAudioSource("pcm") };
  const refuse = (answer: StandInAnswer, { status, body }: SpeechRefusal, headers = {}) =>
    answer.send(status, { "content-type": "application/json", ...headers }, JSON.stringify(body));

  const standIn = await startStandIn(async (request, answer) => {
    const spoken = wire.read(request, apiKey);
    if ("status" in spoken) return refuse(answer, spoken);
    const behaviour: SpeechBehaviour = queued.shift() ??
      behave?.(spoken) ??
      behaviourOfMarker(spoken.input) ?? { kind: "audio" };
    if (behaviour.kind === "error") return refuse(answer, wire.refusal(behaviour), behaviour.headers);
    if (behaviour.kind === "plain") return answer.send(behaviour.status, behaviour.headers, behaviour.body);
    await behaviour.beforeHeaders?.();
    const source = sources[spoken.format];
    const whole = spoken.head === undefined ? source : prefixed(spoken.head, source);
    const { events, object, headers } = spoken;
    if (events !== undefined) return await answerWithEvents(whole, behaviour, answer, events);
    if (object === undefined) return await answerWithAudio(whole, behaviour, answer, headers);
    answer.send(200, { ...headers }, JSON.stringify(object(wholeAudio(whole, behaviour))));
  }, server);
  return { ...standIn, next: (...behaviours) => void queued.push(...behaviours) };
}

function prefixed(head: Uint8Array, source: AudioSource): AudioSource {
  const after = (at: number) => Math.max(0, at - head.length);
  return {
    pieces: (start, end) => [head.subarray(start, end), ...source.pieces(after(start), after(end))],
  };
}
