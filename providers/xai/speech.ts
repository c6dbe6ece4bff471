/**
 * xAI's text to speech: one request, the audio itself as it is made. docs.x.ai, "Text to Speech". It reports no usage.
 */
import type { ProviderDependencies, SpeechAdapter, SpeechCall } from "../contract.ts";
import { answerOfBody } from "../upstream/audio.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { send } from "../upstream/send.ts";
import { phrases } from "./error.ts";

/** Makes the adapter. */
export function createSpeechAdapter({ http }: Pick<ProviderDependencies, "http">): SpeechAdapter {
  return {
    async synthesize(call, { connection, signal, onSent }) {
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, "/v1/tts"),
        headers: { authorization: `Bearer ${connection.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(bodyOf(call)),
        signal,
        onSent,
      };
      const response = await send(http, request, { secrets: [connection.apiKey, call.input], phrases });
      return await answerOfBody(response, call, signal);
    },
  };
}

/** The vendor wants a language; `auto` lets it find out. */
function bodyOf({ options, input, voice, format, sampleRateHz, speed }: SpeechCall): object {
  return {
    language: "auto",
    ...options,
    text: input,
    voice_id: voice,
    output_format: { codec: format, sample_rate: sampleRateHz },
    speed: speed === 1 ? undefined : speed,
    // With these the answer is JSON.
    with_timestamps: undefined,
  };
}
