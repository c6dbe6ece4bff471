/**
 * A stand-in for MiniMax's speech. Facts: platform.minimax.io, "Text to Speech (T2A) HTTP" and "Error Codes", and its own
 * client, mmx-cli 1.0.27. No client that could be a part of the tests proves it.
 */
import type { ErrorBehaviour } from "./openai/openai-behaviour.ts";
import { type AudioEventWords, eventOf } from "./openai/openai-speech.ts";
import {
  type RawSpeechWire,
  type SpeechRefusal,
  type SpeechUpstream,
  type SpeechUpstreamOptions,
  startRawSpeech,
} from "./stand-in/raw-speech.ts";

const models =
  "speech-2.8-hd speech-2.8-turbo speech-2.6-hd speech-2.6-turbo speech-02-hd speech-02-turbo".split(" ");
const voices = ["English_expressive_narrator", "English_radiant_girl"];
const sampleRates = [8_000, 16_000, 22_050, 24_000, 32_000, 44_100];
const formats = ["mp3", "pcm", "wav"];
const longestText = 9_999;

/** What is in every answer, beside its audio or alone. */
export function minimaxStatus(status_code: number, status_msg = "success"): object {
  return { trace_id: "06e5f4a5c4bd5b5c8e6c3d1d0e3c2b1a", base_resp: { status_code, status_msg } };
}

/** Audio that comes while more is to come. */
export function minimaxAudio(audio: Buffer): object {
  return { data: { audio: audio.toString("hex"), status: 1, ced: "" }, ...minimaxStatus(0) };
}

/** What comes at the end; with all the audio, unless it was to be left out. */
export function minimaxEnd(audio: Buffer, info: object | undefined): object {
  const data = { audio: audio.toString("hex"), status: 2, ced: "" };
  return { data, ...(info !== undefined && { extra_info: info }), ...minimaxStatus(0) };
}

interface Body {
  readonly model?: unknown;
  readonly text?: unknown;
  readonly stream?: unknown;
  readonly output_format?: unknown;
  readonly stream_options?: { readonly exclude_aggregated_audio?: unknown };
  readonly voice_setting?: Readonly<Record<string, unknown>>;
  readonly audio_setting?: Readonly<Record<string, unknown>>;
}

const wire: RawSpeechWire = {
  read({ method, path, headers, json }, apiKey) {
    if (method !== "POST" || path.split("?")[0] !== "/v1/t2a_v2")
      return { status: 404, body: { error: "404 page not found" } };
    if (headers.authorization === undefined)
      return refusal(1004, "login fail: Please carry the API secret key in the 'Authorization' field");
    if (headers.authorization !== `Bearer ${apiKey}`) return refusal(2049, "invalid api key");
    const body = (json ?? {}) as Body;
    const fault = findFault(body);
    if (fault !== undefined) return fault;
    const { text, stream = false, stream_options, audio_setting } = body;
    const format = audio_setting?.format ?? "mp3";
    const usual = infoOf(String(text), format, audio_setting?.sample_rate ?? 32_000);
    return {
      input: String(text),
      format: format === "mp3" ? "mp3" : "pcm",
      headers: { "content-type": "application/json; charset=utf-8" },
      ...(stream === true
        ? { events: wordsOf(usual, stream_options?.exclude_aggregated_audio === true) }
        : { object: (audio: Buffer) => minimaxEnd(audio, usual) }),
    };
  },
  refusal({ status, code, message = "unknown error, the stand-in was told to refuse" }: ErrorBehaviour) {
    return { status, body: minimaxStatus(Number(code ?? 1000), message) };
  },
};

function infoOf(text: string, audio_format: unknown, audio_sample_rate: unknown): object {
  const usage_characters = [...text].length;
  return { audio_length: 4_441, audio_sample_rate, audio_format, audio_channel: 1, usage_characters };
}

function wordsOf(usual: object, excludesAll: boolean): AudioEventWords {
  return {
    audio: (bytes) => eventOf(minimaxAudio(bytes)),
    last: (info = usual, audio) =>
      eventOf(minimaxEnd(excludesAll ? Buffer.alloc(0) : audio(), info ?? undefined)),
    failure: eventOf(minimaxStatus(1024, "internal error")),
  };
}

function findFault({ model, text, stream, output_format = "hex", ...body }: Body): SpeechRefusal | undefined {
  const { voice_setting: voice = {}, audio_setting: audio = {} } = body;
  const invalid = (what: string) => refusal(2013, `invalid params, ${what}`);
  if (!models.includes(String(model))) return invalid("model");
  if (typeof text !== "string" || text === "") return invalid("text");
  if ([...text].length > longestText) return invalid("text too long");
  const { voice_id, speed = 1 } = voice;
  if (typeof voice_id !== "string") return invalid("voice_setting voice_id");
  if (!voices.includes(voice_id)) return refusal(2054, "voice id not exist");
  if (!(Number(speed) >= 0.5 && Number(speed) <= 2)) return invalid("voice_setting speed");
  const { format = "mp3", sample_rate = 32_000, channel = 1 } = audio;
  if (!formats.includes(String(format))) return invalid("audio_setting format");
  if (stream === true && format === "wav") return invalid("audio_setting format of a stream");
  if (!sampleRates.includes(Number(sample_rate))) return invalid("audio_setting sample_rate");
  if (channel !== 1 && channel !== 2) return invalid("audio_setting channel");
  return output_format === "hex" ? undefined : invalid("output_format");
}

/** A refusal, whose status is no failure's. */
function refusal(code: number, message: string): SpeechRefusal {
  return { status: 200, body: minimaxStatus(code, message) };
}

/** Starts a stand-in for MiniMax's API. */
export function startMinimaxUpstream(options: SpeechUpstreamOptions = {}): Promise<SpeechUpstream> {
  return startRawSpeech(wire, options);
}
