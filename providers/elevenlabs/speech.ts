/**
 * ElevenLabs' "stream speech": the voice in the path, the encoding in the query, the audio itself as the answer, what it
 * cost in a header, in credits. How many of them a character takes stands in the endpoint's `settings.credits_per_character`,
 * 1 unless given.
 */
import { ProviderError, type ProviderErrorKind, type SpeechAdapter, type SpeechCall } from "../contract.ts";
import type { ProviderHttp } from "../provider-http.ts";
import { answerOfBody } from "../upstream/audio.ts";
import { endpointUrl, pathSegment } from "../upstream/endpoint-url.ts";
import { isRecord } from "../upstream/failure.ts";
import { send } from "../upstream/send.ts";
import { parseHeaderCount } from "../upstream/token-count.ts";

/** Codes whose HTTP status says less, or something else. */
const meanings: ReadonlyMap<string, ProviderErrorKind> = new Map([
  ["content_against_policy", "content_policy"],
  // Sent with 401 as well as with 400.
  ["max_character_limit_exceeded", "invalid_request"],
  ["quota_exceeded", "credentials"],
  ["voice_not_found", "invalid_request"],
]);

const mp3RateHz = 44_100;

/** Makes the adapter. */
export function createSpeechAdapter({ http }: { readonly http: ProviderHttp }): SpeechAdapter {
  return {
    async synthesize(call, { connection, signal, onSent }) {
      const path = `/v1/text-to-speech/${pathSegment(call.voice)}/stream`;
      const request = {
        method: "POST" as const,
        url: `${endpointUrl(connection.baseUrl, path)}?output_format=${outputFormat(call)}`,
        headers: { "xi-api-key": connection.apiKey, "content-type": "application/json" },
        body: JSON.stringify(bodyOf(call)),
        signal,
        onSent,
      };
      const secrets = [connection.apiKey, call.input];
      const response = await send(http, request, { secrets, meanings });
      const credits = parseHeaderCount(response.headers["character-cost"]);
      const report = () => (credits === undefined ? undefined : { characters: credits / creditsEach(call) });
      return await answerOfBody(response, call, signal, { report, mp3RateHz });
    },
  };
}

/** Credits that a character of the model takes. */
function creditsEach({ settings: { credits_per_character: credits } }: SpeechCall): number {
  return typeof credits === "number" ? credits : 1;
}

function outputFormat({ format, sampleRateHz }: SpeechCall): string {
  if (format === "mp3") return `mp3_${mp3RateHz}_128`;
  if (format === "pcm") return `pcm_${sampleRateHz}`;
  throw new ProviderError("invalid_request", "The upstream has no such format.");
}

function bodyOf({ options, input, upstreamModel, speed }: SpeechCall): Readonly<Record<string, unknown>> {
  const { speed: _, ...wished } = isRecord(options.voice_settings) ? options.voice_settings : {};
  const voiceSettings = speed === 1 ? wished : { ...wished, speed };
  return {
    ...options,
    text: input,
    model_id: upstreamModel,
    voice_settings: Object.keys(voiceSettings).length === 0 ? undefined : voiceSettings,
  };
}
