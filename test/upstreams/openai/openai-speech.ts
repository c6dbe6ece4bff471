import { setTimeout as pause } from "node:timers/promises";
import { type AudioSource, createAudioSource } from "../stand-in/audio-source.ts";
import type { StandInAnswer } from "../stand-in/stand-in-server.ts";
import type { AudioBehaviour, ErrorBehaviour, SpeechBehaviour } from "./openai-behaviour.ts";
import type { Refusal, SpeechRequestBody } from "./openai-request.ts";

const contentTypes: Readonly<Record<SpeechRequestBody["response_format"], string>> = {
  mp3: "audio/mpeg",
  opus: "audio/opus",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
};

const usualErrors: Readonly<Record<number, { type: string; code: string | null }>> = {
  401: { type: "invalid_request_error", code: "invalid_api_key" },
  403: { type: "invalid_request_error", code: "unsupported_country_region_territory" },
  429: { type: "requests", code: "rate_limit_exceeded" },
  500: { type: "server_error", code: null },
  503: { type: "service_unavailable_error", code: null },
};

/** Answers valid "create speech" requests; the audio is made once. */
export function createSpeechAnswers() {
  const mp3 = createAudioSource("mp3");
  const pcm = createAudioSource("pcm");
  return async (
    body: SpeechRequestBody,
    behaviour: SpeechBehaviour,
    answer: StandInAnswer,
  ): Promise<void> => {
    if (behaviour.kind === "plain") {
      answer.send(behaviour.status, behaviour.headers, behaviour.body);
    } else if (behaviour.kind === "error") {
      sendError(answer, errorOf(behaviour), behaviour.headers);
    } else {
      await behaviour.beforeHeaders?.();
      const source = body.response_format === "pcm" ? pcm : mp3;
      const isEventStream = body.stream_format === "sse";
      if (!isEventStream)
        return await answerWithAudio(source, behaviour, answer, {
          "content-type": contentTypes[body.response_format],
        });
      await answerWithEvents(source, behaviour, answer, openAiEvents);
    }
  };
}

/** Sends the vendor's error answer. */
export function sendError(
  answer: StandInAnswer,
  refusal: Refusal,
  headers: Record<string, string> = {},
): void {
  const { status, ...error } = refusal;
  answer.send(status, { "content-type": "application/json", ...headers }, JSON.stringify({ error }));
}

/** The refusal that a behaviour asks for, with the vendor's usual words for its status. */
export function errorOf(behaviour: ErrorBehaviour): Refusal {
  const usual = usualErrors[behaviour.status] ?? { type: "invalid_request_error", code: null };
  return {
    status: behaviour.status,
    message: behaviour.message ?? "The stand-in was told to refuse.",
    type: behaviour.type ?? usual.type,
    param: null,
    code: behaviour.code === undefined ? usual.code : behaviour.code,
  };
}

function totalBytesOf(behaviour: AudioBehaviour): number {
  return behaviour.totalBytes ?? 20 * 4096;
}

/** Answers with the audio itself, as the behaviour says; `headers` are the vendor's own. */
export async function answerWithAudio(
  source: AudioSource,
  behaviour: AudioBehaviour,
  answer: StandInAnswer,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const all = {
    ...headers,
    ...(behaviour.contentType !== undefined && { "content-type": behaviour.contentType }),
    ...behaviour.headers,
    ...(behaviour.framing === "length"
      ? { "content-length": String(totalBytesOf(behaviour)) }
      : { "transfer-encoding": "chunked" }),
  };
  const sent = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  answer.start(200, Object.fromEntries(sent));
  await sendAudio(behaviour, answer, (start, end) => answer.write(joined(source.pieces(start, end))));
  if (behaviour.beforeEnd !== undefined) await Promise.race([behaviour.beforeEnd(), answer.closed]);
  if (!answer.isClosed) answer.end();
}

/** Sends chunk by chunk and stops where the behaviour says; returns early only when the client has left. */
async function sendAudio(
  behaviour: AudioBehaviour,
  answer: StandInAnswer,
  writeRange: (start: number, end: number) => Promise<void> | undefined,
): Promise<void> {
  const { chunkBytes = 4096, intervalMs, beforeChunk, stallAfterBytes, cutAfterBytes } = behaviour;
  const totalBytes = totalBytesOf(behaviour);
  const lastByte = Math.min(totalBytes, stallAfterBytes ?? totalBytes, cutAfterBytes ?? totalBytes);
  for (let start = 0, index = 0; start < lastByte && !answer.isClosed; start += chunkBytes, index += 1) {
    if (intervalMs !== undefined && index > 0) await pause(intervalMs);
    const gate = beforeChunk?.(index);
    if (gate !== undefined) await Promise.race([gate, answer.closed]);
    const full = writeRange(start, Math.min(start + chunkBytes, lastByte));
    if (full !== undefined) await full;
  }
  if (stallAfterBytes !== undefined) await answer.closed;
  if (cutAfterBytes !== undefined) await answer.cut(behaviour.cutWith);
}

function joined(pieces: Uint8Array[]): Uint8Array {
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
}

/** How a vendor words the events that its audio comes in, each with the blank line at its end. */
export interface AudioEventWords {
  audio(bytes: Buffer): string;
  /** The last one, by what the behaviour reports: undefined is the vendor's usual, null nothing. */
  last(usage: object | null | undefined, audio: () => Buffer): string;
  /** A failure amid the audio. */
  readonly failure: string;
}

/** One event whose data is an object. */
export function eventOf(data: object, type?: string): string {
  return `${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(data)}\n\n`;
}

const openAiEvents: AudioEventWords = {
  audio: (bytes) => eventOf({ type: "speech.audio.delta", audio: bytes.toString("base64") }),
  last: (usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 }) =>
    eventOf({ type: "speech.audio.done", usage: usage ?? undefined }),
  failure: eventOf({
    type: "error",
    error: { type: "server_error", code: null, message: "It broke.", param: null },
  }),
};

/** Answers with audio in events, as the behaviour says; bytes of audio are counted before they are encoded. */
export async function answerWithEvents(
  source: AudioSource,
  behaviour: AudioBehaviour,
  answer: StandInAnswer,
  words: AudioEventWords,
): Promise<void> {
  answer.start(200, {
    "content-type": behaviour.contentType ?? "text/event-stream; charset=utf-8",
    "transfer-encoding": "chunked",
  });
  const { errorAfterBytes, cutAfterBytes, omitDone, usage } = behaviour;
  const shown = errorAfterBytes === undefined ? behaviour : { ...behaviour, totalBytes: errorAfterBytes };
  await sendAudio(shown, answer, (start, end) =>
    answer.write(words.audio(Buffer.from(joined(source.pieces(start, end))))),
  );
  if (!answer.isClosed && cutAfterBytes === undefined) {
    const whole = () => wholeAudio(source, behaviour);
    if (errorAfterBytes !== undefined) answer.write(words.failure);
    else if (omitDone !== true) answer.write(words.last(usage, whole));
  }
  if (behaviour.beforeEnd !== undefined) await Promise.race([behaviour.beforeEnd(), answer.closed]);
  if (!answer.isClosed) answer.end();
}

/** All the audio of a behaviour. */
export function wholeAudio(source: AudioSource, behaviour: AudioBehaviour): Buffer {
  return Buffer.concat(source.pieces(0, totalBytesOf(behaviour)));
}
