/**
 * MiniMax's "text to audio" (platform.minimax.io, "Text to Speech (T2A) HTTP"): audio as hex in events.
 *
 * - A failure has status 200: what went wrong is a number beside the audio, or in place of the events.
 * - The last event, of status 2, may repeat all of the audio. It is asked not to, and is not believed to obey.
 */
import type { ProviderErrorKind, SpeechAdapter, SpeechCall } from "../contract.ts";
import { ProviderError } from "../contract.ts";
import type { ProviderHttp } from "../provider-http.ts";
import { decodeAudio, mediaTypeOf } from "../upstream/audio.ts";
import { type AudioEvent, answerOfEvents } from "../upstream/audio-events.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { errorFromEvent, isRecord, type Secrets } from "../upstream/failure.ts";
import { readJsonObject, send } from "../upstream/send.ts";

type JsonRecord = Readonly<Record<string, unknown>>;

/**
 * The vendor's page of error codes, as far as they can come of speech, and what it answers besides: 1013, 2054, and what its
 * own client knows (1028, 1030, 2061). Any other is a failure of its own.
 */
const meanings: ReadonlyMap<string, ProviderErrorKind> = new Map([
  ["1000", "upstream"],
  ["1001", "timeout"],
  ["1002", "overloaded"],
  ["1004", "credentials"],
  ["1008", "credentials"],
  ["1013", "upstream"],
  ["1024", "upstream"],
  ["1026", "content_policy"],
  ["1027", "content_policy"],
  ["1028", "credentials"],
  ["1030", "credentials"],
  ["1033", "upstream"],
  ["1039", "overloaded"],
  ["1041", "overloaded"],
  // Too much of the text is invisible or no characters at all.
  ["1042", "invalid_request"],
  ["2013", "invalid_request"],
  ["2042", "invalid_request"],
  ["2045", "overloaded"],
  ["2049", "credentials"],
  ["2054", "invalid_request"],
  ["2056", "credentials"],
  ["2061", "credentials"],
  ["20132", "invalid_request"],
]);

const maxFailureBytes = 64 * 1024;

/** Makes the adapter. */
export function createSpeechAdapter({ http }: { readonly http: ProviderHttp }): SpeechAdapter {
  return {
    async synthesize(call, { connection, signal, onSent }) {
      const secrets = [connection.apiKey, call.input];
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, "/v1/t2a_v2"),
        headers: { authorization: `Bearer ${connection.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(bodyOf(call)),
        signal,
        onSent,
      };
      const response = await send(http, request, { secrets });
      if (mediaTypeOf(response.headers).startsWith("application/json")) {
        throw withoutAudio(await readJsonObject(response, signal, maxFailureBytes), secrets);
      }
      return await answerOfEvents(response, call, signal, (event, hasAudio) =>
        readEvent(event, hasAudio, secrets),
      );
    },
  };
}

function bodyOf({ options, upstreamModel, input, ...call }: SpeechCall) {
  const wished = isRecord(options.voice_setting) ? options.voice_setting : {};
  return {
    ...options,
    model: upstreamModel,
    text: input,
    stream: true,
    stream_options: { exclude_aggregated_audio: true },
    output_format: "hex",
    voice_setting: { ...wished, voice_id: call.voice, speed: call.speed },
    audio_setting: { format: call.format, sample_rate: call.sampleRateHz, channel: call.channels },
  };
}

function readEvent(event: JsonRecord, hasAudio: boolean, secrets: Secrets): AudioEvent {
  const failure = failureOf(event, secrets);
  if (failure !== undefined) throw failure;
  const { audio, status } = isRecord(event.data) ? event.data : {};
  const isLast = status === 2;
  const isRepeated = isLast && hasAudio;
  return {
    audio: isRepeated ? undefined : decodeAudio(audio ?? "", "hex"),
    report: reportOf(event.extra_info),
    isLast,
  };
}

function reportOf(info: unknown): AudioEvent["report"] {
  if (!isRecord(info) || info.usage_characters === undefined) return undefined;
  const { usage_characters: count } = info;
  return { characters: typeof count === "number" ? count : Number.NaN };
}

function failureOf({ base_resp: response }: JsonRecord, secrets: Secrets): ProviderError | undefined {
  if (!isRecord(response) || response.status_code === 0) return undefined;
  const error = { code: String(response.status_code), message: response.status_msg };
  return errorFromEvent({ error }, secrets, meanings);
}

function withoutAudio(answer: JsonRecord, secrets: Secrets): ProviderError {
  const failure = failureOf(answer, secrets);
  if (failure !== undefined) return failure;
  return new ProviderError("bad_answer", "The upstream's answer is not what was asked for.", { status: 200 });
}
