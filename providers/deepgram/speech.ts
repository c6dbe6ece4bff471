/**
 * Deepgram's "speak": everything but the text in the query, where model and voice are one word (`aura-2-thalia-en`), the
 * audio itself as the answer, the characters billed in a header.
 */
import { ProviderError, type ProviderErrorKind, type SpeechAdapter, type SpeechCall } from "../contract.ts";
import type { ProviderHttp } from "../provider-http.ts";
import { answerOfBody } from "../upstream/audio.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { send } from "../upstream/send.ts";
import { parseHeaderCount } from "../upstream/token-count.ts";

/** Codes whose HTTP status says something else: "The model failed to process the request." is no fault of the caller. */
const meanings: ReadonlyMap<string, ProviderErrorKind> = new Map([["unprocessable_entity", "upstream"]]);

/** Fixed for this encoding. */
const mp3RateHz = 22_050;

/** Makes the adapter. It has no use for options. */
export function createSpeechAdapter({ http }: { readonly http: ProviderHttp }): SpeechAdapter {
  return {
    async synthesize(call, { connection, signal, onSent }) {
      const request = {
        method: "POST" as const,
        url: `${endpointUrl(connection.baseUrl, "/v1/speak")}?${queryOf(call)}`,
        headers: { authorization: `Token ${connection.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ text: call.input }),
        signal,
        onSent,
      };
      const response = await send(http, request, { secrets: [connection.apiKey, call.input], meanings });
      // The second name was seen on answers of Aura-2.
      const count = response.headers["dg-char-count"] ?? response.headers["x-dg-characters"];
      const characters = parseHeaderCount(count);
      const report = () => (characters === undefined ? undefined : { characters });
      return await answerOfBody(response, call, signal, { report, mp3RateHz });
    },
  };
}

function queryOf({ upstreamModel, voice, format, sampleRateHz, speed }: SpeechCall): URLSearchParams {
  const query = new URLSearchParams({ model: `${upstreamModel}-${voice}` });
  if (format === "mp3") query.set("encoding", "mp3");
  else if (format === "pcm") {
    query.set("encoding", "linear16");
    query.set("container", "none");
    query.set("sample_rate", String(sampleRateHz));
  } else throw new ProviderError("invalid_request", "The upstream has no such format.");
  // The other languages have no speed yet: asking for one would fail the request.
  if (speed !== 1 && /-(en|es)$/.test(voice)) query.set("speed", String(speed));
  return query;
}
