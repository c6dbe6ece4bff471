import type { ErrorBehaviour } from "./openai/openai-behaviour.ts";
import {
  type RawSpeechWire,
  type SpeechRefusal,
  type SpeechUpstream,
  type SpeechUpstreamOptions,
  startRawSpeech,
} from "./stand-in/raw-speech.ts";

const models = [
  "aura-asteria-en",
  "aura-2-thalia-en",
  "aura-2-apollo-en",
  "aura-2-celeste-es",
  "aura-2-viktoria-de",
];
const knownParameters = ["model", "encoding", "container", "sample_rate", "bit_rate", "speed"];
const sampleRates = ["8000", "16000", "24000", "32000", "48000"];
const longestText = 2_000;
const requestId = "53ff6fd3-6502-49db-b205-a6c3c4e7005f";

/** Deepgram's error object. */
export function deepgramError(err_code: string, err_msg: string): object {
  return { err_code, err_msg, request_id: requestId };
}

const usualCodes: Readonly<Record<number, string>> = {
  401: "INVALID_AUTH",
  402: "ASR_PAYMENT_REQUIRED",
  403: "INSUFFICIENT_PERMISSIONS",
  429: "Too Many Requests",
  503: "Service Unavailable",
};

const wire: RawSpeechWire = {
  read({ method, path, headers, json }, apiKey) {
    const { pathname, searchParams: query } = new URL(path, "http://localhost");
    if (method !== "POST" || pathname !== "/v1/speak") return refusal(404, "NOT_FOUND", "Not found.");
    if (headers.authorization?.toLowerCase() !== `token ${apiKey}`) {
      return refusal(401, "INVALID_AUTH", "Invalid credentials.");
    }
    const fault = findFault(query);
    if (fault !== undefined) return fault;
    const { text } = (json ?? {}) as { text?: unknown };
    if (typeof text !== "string") return refusal(400, "PAYLOAD_ERROR", "Failed to deserialize JSON payload.");
    if (text === "") return refusal(400, "Bad Request", "Input text contains no characters.");
    if ([...text].length > longestText) {
      const message = `Input text exceeds maximum character limit of ${longestText}.`;
      return refusal(413, "Payload Too Large", message);
    }
    const isPcm = query.get("encoding") === "linear16";
    const model = query.get("model") ?? "aura-asteria-en";
    return {
      input: text,
      format: isPcm ? "pcm" : "mp3",
      headers: {
        "content-type": isPcm
          ? `audio/l16;rate=${query.get("sample_rate") ?? 24_000};channels=1`
          : "audio/mpeg",
        "dg-model-name": model,
        "dg-char-count": String([...text].length),
        "dg-request-id": requestId,
      },
    };
  },
  refusal({ status, code, message = "The stand-in was told to refuse." }: ErrorBehaviour) {
    return refusal(status, code ?? usualCodes[status] ?? "Bad Request", message);
  },
};

function findFault(query: URLSearchParams): SpeechRefusal | undefined {
  const bad = (message: string) => refusal(400, "INVALID_QUERY_PARAMETER", message);
  const unknown = [...query.keys()].find((name) => !knownParameters.includes(name));
  if (unknown !== undefined) return bad(`Failed to deserialize query parameters: unknown field ${unknown}`);
  if (!models.includes(query.get("model") ?? "aura-asteria-en")) {
    return refusal(400, "Bad Request", "Bad Request: No such model/language/tier combination found.");
  }
  const [encoding, container] = [query.get("encoding") ?? "mp3", query.get("container")];
  const format = (message: string) => bad(`Unsupported audio format: ${message}`);
  if (encoding === "mp3") {
    if (container !== null) return format("container is not applicable when encoding=mp3");
    if (query.has("sample_rate")) return format("sample_rate is not applicable when encoding=mp3");
  } else if (encoding !== "linear16" || container !== "none") {
    return format("the stand-in makes mp3, and linear16 without a container");
  } else if (!sampleRates.includes(query.get("sample_rate") ?? "24000")) {
    return format(`sample_rate must be ${sampleRates.join(", ")} when encoding=linear16`);
  }
  const speed = Number(query.get("speed") ?? 1);
  if (query.has("speed") && query.get("model")?.endsWith("-de"))
    return bad("speed is not supported by this model");
  return speed >= 0.7 && speed <= 1.5 ? undefined : bad("speed must be between 0.7 and 1.5");
}

function refusal(status: number, code: string, message: string): SpeechRefusal {
  return { status, body: deepgramError(code, message) };
}

/** Starts a stand-in for Deepgram's API. */
export function startDeepgramUpstream(options: SpeechUpstreamOptions = {}): Promise<SpeechUpstream> {
  return startRawSpeech(wire, options);
}
