/**
 * A stand-in for Mistral's speech. Facts: the vendor's pages on speech ("Speech generation", "Troubleshooting") and its own
 * client, @mistralai/mistralai 2.7.0; the error bodies are those that it answers with.
 */

import type { ErrorBehaviour } from "./openai/openai-behaviour.ts";
import { type AudioEventWords, eventOf } from "./openai/openai-speech.ts";
import { endlessWavHeader } from "./stand-in/audio-source.ts";
import {
  type RawSpeechWire,
  type SpeechRefusal,
  type SpeechUpstream,
  type SpeechUpstreamOptions,
  startRawSpeech,
} from "./stand-in/raw-speech.ts";

const models = ["voxtral-mini-tts-2603", "voxtral-mini-tts-3-0"];
const voices = ["en_paul_neutral", "gb_jane_neutral", "voice_478"];
const formats = ["mp3", "wav", "pcm"];
/** What clients of OpenAI's interface send, and the vendor does not know. */
const foreignFields = ["voice", "speed", "instructions", "language", "stream_format", "format"];
const sampleRateHz = 24_000;

/** Mistral's error object. */
export function mistralError(status: number, type: string, code: string | null, message: unknown): object {
  return { object: "error", message, type, param: null, code, raw_status_code: status };
}

/** What it says of fields that it will not take. */
export function mistralFault(field: string, msg: string): object {
  const detail = [{ type: "extra_forbidden", loc: ["body", field], msg, input: null }];
  return mistralError(422, "invalid_request_error", null, { detail });
}

const events: AudioEventWords = {
  audio: (bytes) => worded("speech.audio.delta", { audio_data: bytes.toString("base64") }),
  last: (usage = { prompt_tokens: 12, completion_tokens: 80, total_tokens: 92 }) =>
    worded("speech.audio.done", { ...(usage !== null && { usage }) }),
  failure: worded("error", { error: { type: "internal_server_error", code: "3000", message: "It broke." } }),
};

function worded(type: string, data: object): string {
  return eventOf({ type, ...data }, type);
}

interface Body {
  readonly model?: unknown;
  readonly input?: unknown;
  readonly voice_id?: unknown;
  readonly response_format?: unknown;
  readonly stream?: unknown;
  readonly expressiveness?: unknown;
}

const wire: RawSpeechWire = {
  read({ method, path, headers, json }, apiKey) {
    if (method !== "POST" || path !== "/v1/audio/speech")
      return { status: 404, body: { detail: "Not Found" } };
    if (headers.authorization !== `Bearer ${apiKey}`)
      return { status: 401, body: { detail: "Unauthorized" } };
    const body = (json ?? {}) as Body;
    const fault = findFault(body);
    if (fault !== undefined) return fault;
    const { input, response_format = "mp3", stream = false } = body;
    return {
      input: String(input),
      format: response_format === "mp3" ? "mp3" : "pcm",
      headers: { "content-type": "application/json" },
      ...(response_format === "wav" && { head: endlessWavHeader(sampleRateHz) }),
      ...(stream === true
        ? { events }
        : { object: (audio: Buffer) => ({ audio_data: audio.toString("base64") }) }),
    };
  },
  refusal({ status, type = "internal_server_error", code = "3000", message }: ErrorBehaviour) {
    return refusal(status, type, code, message ?? "The stand-in was told to refuse.");
  },
};

function findFault(body: Body): SpeechRefusal | undefined {
  const { model, input, voice_id, response_format = "mp3", expressiveness = 1 } = body;
  const unprocessable = (field: string, msg: string) => ({ status: 422, body: mistralFault(field, msg) });
  const foreign = foreignFields.find((name) => name in body);
  if (foreign !== undefined) return unprocessable(foreign, "Extra inputs are not permitted");
  if (typeof input !== "string") return unprocessable("input", "Field required");
  if (!formats.includes(String(response_format))) return unprocessable("response_format", "Input should be…");
  if (!(Number(expressiveness) >= 1 && Number(expressiveness) <= 5))
    return unprocessable("expressiveness", "Input should be less than or equal to 5");
  if (!models.includes(String(model)))
    return refusal(400, "invalid_model", "1500", `Invalid model: ${String(model)}`);
  if (typeof voice_id !== "string")
    return refusal(400, "invalid_request_error", null, "Either ref_audio or voice must be provided.");
  if (!voices.includes(voice_id))
    return refusal(404, "invalid_voice", "1902", `Voice '${voice_id}' not found.`);
  return undefined;
}

function refusal(status: number, type: string, code: string | null, message: string): SpeechRefusal {
  return { status, body: mistralError(status, type, code, message) };
}

/** Starts a stand-in for Mistral's API. */
export function startMistralUpstream(options: SpeechUpstreamOptions = {}): Promise<SpeechUpstream> {
  return startRawSpeech(wire, options);
}
