/** Cartesia's "text to speech (bytes)": the audio itself as the answer, and no word of what it cost. */
import type { NativeAudioFormat, ProviderErrorKind, SpeechAdapter, SpeechCall } from "../contract.ts";
import type { ProviderHttp } from "../provider-http.ts";
import { answerOfBody } from "../upstream/audio.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { isRecord } from "../upstream/failure.ts";
import { send } from "../upstream/send.ts";

/** The version of the interface that this is written for; the vendor keeps what it means. */
const version = "2026-08-14";

const meanings: ReadonlyMap<string, ProviderErrorKind> = new Map([
  ["quota_exceeded", "credentials"],
  ["concurrency_limited", "overloaded"],
]);

/** Makes the adapter. */
export function createSpeechAdapter({ http }: { readonly http: ProviderHttp }): SpeechAdapter {
  return {
    async synthesize(call, { connection, signal, onSent }) {
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, "/tts/bytes"),
        headers: {
          authorization: `Bearer ${connection.apiKey}`,
          "cartesia-version": version,
          "content-type": "application/json",
        },
        body: JSON.stringify(bodyOf(call)),
        signal,
        onSent,
      };
      const response = await send(http, request, { secrets: [connection.apiKey, call.input], meanings });
      return await answerOfBody(response, call, signal);
    },
  };
}

const outputFormats: Readonly<Record<NativeAudioFormat, object>> = {
  mp3: { container: "mp3", bit_rate: 128_000 },
  pcm: { container: "raw", encoding: "pcm_s16le" },
  wav: { container: "wav", encoding: "pcm_s16le" },
};

function bodyOf({ options, upstreamModel, input, voice, format, sampleRateHz, speed }: SpeechCall) {
  const { speed: _, ...wished } = isRecord(options.generation_config) ? options.generation_config : {};
  const generation = speed === 1 ? wished : { ...wished, speed };
  return {
    ...options,
    model_id: upstreamModel,
    transcript: input,
    voice,
    output_format: { ...outputFormats[format], sample_rate: sampleRateHz },
    generation_config: Object.keys(generation).length === 0 ? undefined : generation,
  };
}
