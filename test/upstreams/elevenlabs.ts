import type { ErrorBehaviour } from "./openai/openai-behaviour.ts";
import {
  type RawSpeechWire,
  type SpeechRefusal,
  type SpeechUpstream,
  type SpeechUpstreamOptions,
  type SpokenText,
  startRawSpeech,
} from "./stand-in/raw-speech.ts";
import type { ReceivedRequest } from "./stand-in/stand-in-server.ts";

/** Longest text of each model, characters. */
const models: ReadonlyMap<unknown, number> = new Map([
  ["eleven_v3", 5_000],
  ["eleven_multilingual_v2", 10_000],
  ["eleven_flash_v2_5", 40_000],
]);
const voices = ["EXAVITQu4vr4xnSDxMaL", "JBFqnCBsd6RMkjVDRZzb"];
const outputFormats = /^(mp3_(22050_32|44100_(32|64|96|128|192))|pcm_(8000|16000|22050|24000|44100|48000))$/;
const pathPattern = /^\/v1\/text-to-speech\/([^/]+?)(\/stream)?$/;

/** ElevenLabs' error object. */
export function elevenLabsError(type: string, code: string, message: string): object {
  return { detail: { type, code, message, status: code, request_id: "01JD8Q0YH7M2K4R9T3", param: null } };
}

const usualErrors: Readonly<Record<number, readonly [type: string, code: string]>> = {
  401: ["authentication_error", "invalid_api_key"],
  402: ["payment_required", "paid_plan_required"],
  429: ["rate_limit_error", "too_many_concurrent_requests"],
  500: ["internal_error", "internal_server_error"],
  503: ["service_unavailable", "system_busy"],
};

const wire: RawSpeechWire = {
  read(request, apiKey) {
    const { pathname, searchParams } = new URL(request.path, "http://localhost");
    const voice = pathPattern.exec(pathname)?.[1];
    if (request.method !== "POST" || voice === undefined)
      return { status: 404, body: { detail: "Not Found" } };
    if (request.headers["xi-api-key"] !== apiKey) {
      return refusal(401, "authentication_error", "invalid_api_key", "Invalid API key");
    }
    const outputFormat = searchParams.get("output_format") ?? "mp3_44100_128";
    const fault = findFault(request, decodeURIComponent(voice), outputFormat);
    return fault ?? spokenText(request, outputFormat);
  },
  refusal({ status, code, message = "The stand-in was told to refuse." }: ErrorBehaviour) {
    const [type, usualCode] = usualErrors[status] ?? ["invalid_request", "invalid_parameters"];
    return refusal(status, type, code ?? usualCode, message);
  },
};

function findFault(
  { json }: ReceivedRequest,
  voice: string,
  outputFormat: string,
): SpeechRefusal | undefined {
  const {
    text,
    model_id = "eleven_multilingual_v2",
    voice_settings,
  } = (json ?? {}) as Record<string, unknown>;
  if (typeof text !== "string") return invalid("text", "Field required", "missing");
  const longest = models.get(model_id);
  if (longest === undefined) {
    return refusal(400, "not_found", "model_not_found", `A model with model ID ${model_id} does not exist`);
  }
  if ([...text].length > longest) {
    const message = `This request's text exceeds the character limit of ${longest} characters.`;
    return refusal(400, "validation_error", "max_character_limit_exceeded", message);
  }
  if (!voices.includes(voice)) {
    return refusal(404, "not_found", "voice_not_found", `A voice with voice_id ${voice} was not found.`);
  }
  if (!outputFormats.test(outputFormat)) {
    return refusal(400, "validation_error", "invalid_output_format", "No such output format");
  }
  const { speed = 1 } = (voice_settings ?? {}) as Record<string, unknown>;
  if (typeof speed === "number" && speed >= 0.7 && speed <= 1.2) return undefined;
  return refusal(400, "validation_error", "invalid_voice_settings", "speed must be between 0.7 and 1.2");
}

function spokenText({ json }: ReceivedRequest, outputFormat: string): SpokenText {
  const { text, model_id } = json as { text: string; model_id?: string };
  const isPcm = outputFormat.startsWith("pcm_");
  const credits = Math.ceil([...text].length / (model_id?.includes("flash") ? 2 : 1));
  return {
    input: text,
    format: isPcm ? "pcm" : "mp3",
    headers: {
      "content-type": isPcm ? "audio/pcm" : "audio/mpeg",
      "character-cost": String(credits),
      "request-id": "01JD8Q0YH7M2K4R9T3",
    },
  };
}

function refusal(status: number, type: string, code: string, message: string): SpeechRefusal {
  return { status, body: elevenLabsError(type, code, message) };
}

/** FastAPI's own answer to a body of another shape. */
function invalid(field: string, msg: string, type: string): SpeechRefusal {
  return { status: 422, body: { detail: [{ type, loc: ["body", field], msg, input: {} }] } };
}

/** Starts a stand-in for ElevenLabs' API; `/stream` and the path without it answer alike. */
export function startElevenLabsUpstream(options: SpeechUpstreamOptions = {}): Promise<SpeechUpstream> {
  return startRawSpeech(wire, options);
}
