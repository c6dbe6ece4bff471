/**
 * Mistral's "speech" (docs.mistral.ai, "Speech generation", "Stream speech"): base64 audio in events.
 *
 * - Samples are asked for as wav, whose header says what they are: those that the vendor calls pcm are 32-bit floats.
 * - What the vendor does not take (a speed; instructions, until a model does) it refuses: nothing of it is sent.
 */
import type { ProviderErrorKind, SpeechAdapter, SpeechCall, TokenUsage } from "../contract.ts";
import type { ProviderHttp } from "../provider-http.ts";
import { decodeAudio } from "../upstream/audio.ts";
import { type AudioEvent, answerOfEvents } from "../upstream/audio-events.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { errorFromEvent, isRecord } from "../upstream/failure.ts";
import { type Failures, send } from "../upstream/send.ts";
import { parseTokenCount } from "../upstream/token-count.ts";

const meanings: ReadonlyMap<string, ProviderErrorKind> = new Map([
  ["rate_limited", "overloaded"],
  ["tier_not_allowed", "credentials"],
  // What the vendor says of texts that it will not speak; a key is refused with 401.
  ["403", "content_policy"],
]);

/** Makes the adapter. */
export function createSpeechAdapter({ http }: { readonly http: ProviderHttp }): SpeechAdapter {
  return {
    async synthesize(call, { connection, signal, onSent }) {
      const failures = { secrets: [connection.apiKey, call.input], meanings };
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, "/v1/audio/speech"),
        headers: { authorization: `Bearer ${connection.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(bodyOf(call)),
        signal,
        onSent,
      };
      const response = await send(http, request, failures);
      return await answerOfEvents(response, call, signal, (event) => readEvent(event, failures));
    },
  };
}

function bodyOf({ options, upstreamModel, input, instructions, voice, format }: SpeechCall) {
  return {
    ...options,
    model: upstreamModel,
    input,
    voice_id: voice,
    instruction: instructions,
    response_format: format,
    stream: true,
  };
}

function readEvent(
  event: Readonly<Record<string, unknown>>,
  { secrets }: Pick<Failures, "secrets">,
): AudioEvent {
  const { type, audio_data: audio, usage, error } = event;
  if (type === "speech.audio.delta") return { audio: decodeAudio(audio) };
  if (type === "speech.audio.done") return { report: { tokens: parseUsage(usage) }, isLast: true };
  if (type === "error" || isRecord(error) || event.object === "error") {
    throw errorFromEvent(event, secrets, meanings);
  }
  return {};
}

function parseUsage(usage: unknown): TokenUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const completion = parseTokenCount(usage.completion_tokens);
  return { prompt: parseTokenCount(usage.prompt_tokens), completion, audioCompletion: completion };
}
