/** LMNT's "generate speech": the audio itself as the answer, and no word of what it cost. */
import { type NativeAudioFormat, ProviderError, type SpeechAdapter } from "../contract.ts";
import type { ProviderHttp } from "../provider-http.ts";
import { answerOfBody } from "../upstream/audio.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { send } from "../upstream/send.ts";

/** The version of the interface that this is written for. */
const version = "1.1";

/** The formats that it makes while it speaks; a WAV it would send only once it is whole. */
const formats: Partial<Record<NativeAudioFormat, string>> = { mp3: "mp3", pcm: "pcm_s16le" };

/** Makes the adapter. */
export function createSpeechAdapter({ http }: { readonly http: ProviderHttp }): SpeechAdapter {
  return {
    async synthesize(call, { connection, signal, onSent }) {
      const { upstreamModel: model, input: text, voice, sampleRateHz: sample_rate } = call;
      const format = formats[call.format];
      if (format === undefined)
        throw new ProviderError("invalid_request", "The upstream has no such format.");
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, "/v1/ai/speech/bytes"),
        headers: {
          "x-api-key": connection.apiKey,
          "lmnt-version": version,
          "content-type": "application/json",
        },
        body: JSON.stringify({ ...call.options, model, text, voice, format, sample_rate }),
        signal,
        onSent,
      };
      const response = await send(http, request, { secrets: [connection.apiKey, text] });
      return await answerOfBody(response, call, signal);
    },
  };
}
