import type { ErrorBehaviour } from "./openai/openai-behaviour.ts";
import {
  type RawSpeechWire,
  type SpeechRefusal,
  type SpeechUpstream,
  type SpeechUpstreamOptions,
  startRawSpeech,
} from "./stand-in/raw-speech.ts";

const voices = ["leah", "brandon"];
const contentTypes: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  pcm_s16le: "application/octet-stream",
};
const longestText = 5_000;

/** LMNT's error object. */
export function lmntError(type: string, message: string): object {
  return { type: "error", error: { type, message } };
}

const usualTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
  500: "api_error",
};

const wire: RawSpeechWire = {
  read({ method, path, headers, json }, apiKey) {
    if (method !== "POST" || path !== "/v1/ai/speech/bytes") return refusal(404, `No ${method} ${path}`);
    if (headers["x-api-key"] !== apiKey) return refusal(401, "Invalid API key");
    if (headers["lmnt-version"] !== "1.1") return refusal(400, "No such version");
    const { text, voice, model = "blizzard", format = "mp3", sample_rate = 24_000 } = (json ?? {}) as Body;
    if (typeof text !== "string" || text === "") return refusal(400, "text is required");
    if ([...text].length > longestText) return refusal(400, `text must be at most ${longestText} characters`);
    if (model !== "blizzard") return refusal(400, "No such model");
    if (!voices.includes(String(voice))) return refusal(404, "No such voice");
    if (![8_000, 16_000, 24_000].includes(Number(sample_rate))) return refusal(400, "No such sample_rate");
    const contentType = contentTypes[String(format)];
    if (contentType === undefined) return refusal(400, "The stand-in makes mp3 and pcm_s16le");
    return {
      input: text,
      format: format === "mp3" ? "mp3" : "pcm",
      headers: { "content-type": contentType, "request-id": "req_01JD8Q0YH7M2K4R9T3" },
    };
  },
  refusal({ status, code, message = "The stand-in was told to refuse." }: ErrorBehaviour) {
    return refusal(status, message, code ?? undefined);
  },
};

type Body = Readonly<Record<"text" | "voice" | "model" | "format" | "sample_rate", unknown>>;

function refusal(status: number, message: string, type?: string): SpeechRefusal {
  return { status, body: lmntError(type ?? usualTypes[status] ?? "invalid_request_error", message) };
}

/** Starts a stand-in for LMNT's API. */
export function startLmntUpstream(options: SpeechUpstreamOptions = {}): Promise<SpeechUpstream> {
  return startRawSpeech(wire, options);
}
