import type { IncomingHttpHeaders } from "node:http";

/** A refusal with the vendor's status and error object. */
export interface Refusal {
  status: number;
  message: string;
  type: string;
  param: string | null;
  code: string | null;
}

/** A valid body of "create speech". */
export interface SpeechRequestBody {
  model: string;
  input: string;
  voice: string | { id: string };
  response_format: "mp3" | "opus" | "aac" | "flac" | "wav" | "pcm";
  speed: number;
  stream_format: "audio" | "sse";
  instructions?: string;
}

/** The speech that a vendor of this wire shape offers; it refuses everything else. */
export interface SpeechOffer {
  readonly models: readonly string[];
  readonly voices: readonly string[];
  /** Those of the models that answer with events where they are asked to. */
  readonly eventModels: readonly string[];
}

const eventModels: readonly string[] = ["gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"];
const openAiSpeech: SpeechOffer = {
  models: ["tts-1", "tts-1-hd", ...eventModels],
  voices: "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split(" "),
  eventModels,
};
const formats: readonly unknown[] = ["mp3", "opus", "aac", "flac", "wav", "pcm"];
const longestInput = 4096;

/** The vendor's view of the Authorization header; undefined when the key is right. */
export function refuseKey(headers: IncomingHttpHeaders, apiKey: string): Refusal | undefined {
  const header = headers.authorization;
  if (header === undefined) return refusal(401, "No API key was given.", null, null);
  if (header === `Bearer ${apiKey}`) return undefined;
  return refusal(401, `Wrong API key: ${header.slice(7)}.`, null, "invalid_api_key");
}

/** Checks a body as the vendor documents it and fills in the defaults. */
export function checkSpeechRequest(
  json: unknown,
  offer: SpeechOffer = openAiSpeech,
): { body: SpeechRequestBody } | { refusal: Refusal } {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return { refusal: refusal(400, "The body is not a JSON object.", null, null) };
  }
  const body = json as Record<string, unknown>;
  const fault = findFault(body, offer);
  if (fault !== undefined) return { refusal: fault };
  const filled = { response_format: "mp3", speed: 1, stream_format: "audio", ...body };
  return { body: filled as unknown as SpeechRequestBody };
}

function findFault(body: Record<string, unknown>, offer: SpeechOffer): Refusal | undefined {
  const { model, input, voice, response_format, speed, stream_format } = body;
  const voiceId = typeof voice === "object" && voice !== null ? (voice as { id?: unknown }).id : undefined;
  if (typeof model !== "string")
    return refusal(400, "model is missing.", "model", "missing_required_parameter");
  if (!offer.models.includes(model))
    return refusal(404, "There is no such model.", "model", "model_not_found");
  if (typeof input !== "string")
    return refusal(400, "input is missing.", "input", "missing_required_parameter");
  if (input.length === 0) return refusal(400, "input is too short.", "input", "string_too_short");
  if ([...input].length > longestInput) return refusal(400, "input is too long.", "input", "string_too_long");
  if (typeof voiceId !== "string" && !(offer.voices as readonly unknown[]).includes(voice))
    return invalid("voice");
  if (response_format !== undefined && !formats.includes(response_format)) return invalid("response_format");
  if (speed !== undefined && !(typeof speed === "number" && speed >= 0.25 && speed <= 4))
    return invalid("speed");
  if (stream_format !== undefined && stream_format !== "audio" && stream_format !== "sse") {
    return invalid("stream_format");
  }
  if (stream_format === "sse" && !offer.eventModels.includes(model)) return invalid("stream_format");
  return undefined;
}

/** A value that the vendor does not take. */
export function invalid(param: string): Refusal {
  return refusal(400, `${param} has a value that is not supported.`, param, "invalid_value");
}

/** A refusal as the vendor words its checks. */
export function refusal(status: number, message: string, param: string | null, code: string | null): Refusal {
  return { status, message, type: "invalid_request_error", param, code };
}
