import type { ErrorBehaviour } from "./openai/openai-behaviour.ts";
import { endlessWavHeader } from "./stand-in/audio-source.ts";
import {
  type RawSpeechWire,
  type SpeechRefusal,
  type SpeechUpstream,
  type SpeechUpstreamOptions,
  startRawSpeech,
} from "./stand-in/raw-speech.ts";

const models = ["sonic-3-2026-01-12", "sonic-3.5-2026-05-04", "sonic-3.6-2026-08-27"];
const voices = ["f786b574-daa5-4673-aa0c-cbe3e8534c02", "228fca29-3a0a-435c-8728-5cb483251068"];
const versions = ["2026-03-01", "2026-08-14"];
const sampleRates = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000];
const bitRates = [32_000, 64_000, 96_000, 128_000, 192_000];
const encodings = ["pcm_s16le", "pcm_f32le", "pcm_mulaw", "pcm_alaw"];

/** Cartesia's error object. */
export function cartesiaError(error_code: string | null, title: string, message: string): object {
  return { error_code, title, message, request_id: "550e8400-e29b-41d4-a716-446655440000" };
}

const usualErrors: Readonly<Record<number, readonly [code: string | null, title: string]>> = {
  401: [null, "Unauthorized"],
  402: ["quota_exceeded", "Credit limit reached"],
  429: ["concurrency_limited", "Too many concurrent requests"],
  500: [null, "Internal server error"],
};

interface Body {
  readonly model_id?: unknown;
  readonly transcript?: unknown;
  readonly voice?: unknown;
  readonly output_format?: Readonly<Record<string, unknown>>;
  readonly generation_config?: Readonly<Record<string, unknown>>;
}

const wire: RawSpeechWire = {
  read({ method, path, headers, json }, apiKey) {
    if (method !== "POST" || path !== "/tts/bytes") return refusal(404, null, "Not found", path);
    if (headers.authorization !== `Bearer ${apiKey}`)
      return refusal(401, null, "Unauthorized", "Invalid API key");
    if (!versions.includes(String(headers["cartesia-version"]))) {
      return refusal(400, null, "Invalid version", "Cartesia-Version must be a version of the API.");
    }
    const body = (json ?? {}) as Body;
    const { transcript, output_format: { container, sample_rate } = {} } = body;
    const fault = findFault(body);
    if (fault !== undefined) return fault;
    const isMp3 = container === "mp3";
    const contentType = isMp3
      ? "audio/mpeg"
      : container === "wav"
        ? "audio/wav"
        : `audio/pcm;rate=${sample_rate}`;
    return {
      input: String(transcript),
      format: isMp3 ? "mp3" : "pcm",
      headers: { "content-type": contentType },
      ...(container === "wav" && { head: endlessWavHeader(Number(sample_rate)) }),
    };
  },
  refusal({ status, code, message = "The stand-in was told to refuse." }: ErrorBehaviour) {
    const [usualCode, title] = usualErrors[status] ?? [null, "Bad request"];
    return refusal(status, code ?? usualCode, title, message);
  },
};

function findFault({ model_id, transcript, voice, output_format, generation_config }: Body) {
  const bad = (message: string) => refusal(400, null, "Bad request", message);
  if (typeof transcript !== "string" || transcript === "") return bad("transcript must not be empty");
  if (!models.includes(String(model_id)))
    return refusal(404, "model_not_found", "Model not found", "No such model");
  const id = typeof voice === "object" && voice !== null ? (voice as { id?: unknown }).id : voice;
  if (!voices.includes(String(id)))
    return refusal(404, "voice_not_found", "Voice not found", "No such voice");
  const { container, encoding, sample_rate, bit_rate } = output_format ?? {};
  if (!sampleRates.includes(Number(sample_rate))) return bad("sample_rate is invalid");
  if (container === "mp3" ? !bitRates.includes(Number(bit_rate)) : !encodings.includes(String(encoding))) {
    return bad("output_format is invalid");
  }
  const { speed = 1 } = generation_config ?? {};
  return Number(speed) >= 0.6 && Number(speed) <= 1.5 ? undefined : bad("speed must be between 0.6 and 1.5");
}

function refusal(status: number, code: string | null, title: string, message: string): SpeechRefusal {
  return { status, body: cartesiaError(code, title, message) };
}

/** Starts a stand-in for Cartesia's API. */
export function startCartesiaUpstream(options: SpeechUpstreamOptions = {}): Promise<SpeechUpstream> {
  return startRawSpeech(wire, options);
}
