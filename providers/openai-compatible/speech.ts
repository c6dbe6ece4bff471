/**
 * OpenAI's "create speech" as many upstreams speak it. The endpoint's `settings.stream` picks the answer's shape: "raw" or
 * absent, the audio itself; "sse", events with base64 audio; "json", one object with all of it.
 *
 * - Audio goes on as it arrives, in the buffers that the socket filled ("sse": one buffer an event).
 * - The answer is whole when the body ends ("sse": with the event or the mark that says so); anything else throws.
 *
 * Settings of an endpoint besides: `audio_field`, the member that holds base64 audio, "audio" by default; `format_names`,
 * what the upstream calls mp3, pcm and wav; `body`, fixed fields under those of a request; `usage_headers`, the headers
 * that tell what it came to.
 */
import { type AttemptContext, ProviderError, type SpeechAdapter, type SpeechCall } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import {
  answerOfBody,
  type BegunAudio,
  decodeAudio,
  emptyAnswer,
  mediaTypeOf,
  speechAnswer,
} from "../upstream/audio.ts";
import { isEventStream } from "../upstream/audio-events.ts";
import { errorFromEvent } from "../upstream/failure.ts";
import { readJsonObject, refuse, send } from "../upstream/send.ts";
import {
  addressOf,
  type DialectOptions,
  headersOf,
  overFixedFields,
  recordOf,
  settingsOf,
} from "./dialect.ts";
import { reportedByHeaders, speechUsageOf } from "./reported-usage.ts";
import { speechEvents } from "./speech-events.ts";

/** What differs between the upstreams that speak this dialect. */
export interface SpeechDialectOptions extends DialectOptions {
  /** Path with its version, as it follows the base URL: "/v1/audio/speech". */
  readonly path: string;
}

const mebibyte = 1024 * 1024;
const maxResponseMib = 96;

/** Makes the adapter. */
export function createSpeechAdapter(options: SpeechDialectOptions): SpeechAdapter {
  return {
    async synthesize(asked, context) {
      const call = { ...asked, settings: settingsOf(options, asked.settings) };
      const { connection, signal, onSent } = context;
      const request = {
        method: "POST" as const,
        url: addressOf(options, connection.baseUrl, options.path, call.upstreamModel),
        headers: { ...headersOf(options, connection.apiKey), "content-type": "application/json" },
        body: JSON.stringify(bodyOf(call)),
        signal,
        onSent,
      };
      const secrets = [connection.apiKey, call.input];
      const response = await send(options.http, request, { secrets, nowMs: options.nowMs });
      const inHeaders = reportedByHeaders(response.headers, recordOf(call.settings.usage_headers));
      const encoded = beginEncoded({ call, context, response, secrets });
      if (encoded === undefined)
        return await answerOfBody(response, call, signal, { report: () => inHeaders });
      const { audio, report } = encoded;
      return await speechAnswer({
        format: call.format,
        shape: call,
        audio,
        response,
        report: () => inHeaders ?? report?.(),
      });
    },
  };
}

function bodyOf({ settings, ...call }: SpeechCall): Readonly<Record<string, unknown>> {
  const fixed = recordOf(settings.body);
  const names = recordOf(settings.format_names);
  const asksForEvents = settings.stream === "sse" && fixed.stream === undefined;
  return overFixedFields(settings, {
    ...call.options,
    model: call.upstreamModel,
    input: call.input,
    voice: call.voice === "" ? undefined : call.voice,
    response_format: names[call.format] ?? call.format,
    speed: call.speed === 1 ? undefined : call.speed,
    ...(call.instructions !== undefined && { instructions: call.instructions }),
    stream_format: asksForEvents ? "sse" : undefined,
    stream: undefined,
  });
}

interface BegunAnswer {
  readonly call: SpeechCall;
  readonly context: AttemptContext;
  readonly response: ProviderHttpResponse;
  readonly secrets: readonly string[];
}

/** Audio in base64, by the shape that the answer should have; undefined for the audio itself. Throws ProviderError. */
function beginEncoded(answer: BegunAnswer): Pick<BegunAudio, "audio" | "report"> | undefined {
  const { call, context, response, secrets } = answer;
  const mediaType = mediaTypeOf(response.headers);
  const field = typeof call.settings.audio_field === "string" ? call.settings.audio_field : undefined;
  switch (call.settings.stream) {
    case "sse":
      if (!isEventStream(response)) throw refuse(response);
      return speechEvents({ field, secrets, signal: context.signal, response });
    case "json":
      if (!/^application\/([\w.-]+\+)?json\b/.test(mediaType)) throw refuse(response);
      return audioFromJson(answer, field ?? "audio");
    default:
      return undefined;
  }
}

function audioFromJson(answer: BegunAnswer, field: string): Pick<BegunAudio, "audio" | "report"> {
  const { call, context, response, secrets } = answer;
  const { max_response_mib: mib = maxResponseMib } = call.settings;
  let usage: ReturnType<typeof speechUsageOf>;
  async function* read(): AsyncGenerator<Uint8Array, undefined> {
    const body = await readJsonObject(response, context.signal, Number(mib) * mebibyte);
    if (body[field] === undefined) {
      throw body.error === undefined || body.error === null ? emptyAnswer() : errorFromEvent(body, secrets);
    }
    const audio = decodeAudio(body[field]);
    if (audio.length === 0) throw new ProviderError("bad_answer", "The upstream's audio is empty.");
    usage = speechUsageOf(body);
    yield audio;
  }
  return { audio: read(), report: () => usage };
}
