/**
 * OpenAI's "create speech" as many upstreams speak it. The endpoint's `settings.stream` picks the answer's shape: absent, the
 * audio itself; "sse", events with base64 audio that end with the tokens used.
 *
 * - Audio goes on as it arrives, in the buffers that the socket filled ("sse": one buffer an event).
 * - The answer is whole when the body ends ("sse": with the event that says so); anything else throws.
 */
import { drainBody } from "../../lib/http/read-body.ts";
import { decodeServerSentEvents } from "../../lib/http/sse-decode.ts";
import {
  type AttemptContext,
  type AudioFormat,
  ProviderError,
  type ProviderHttp,
  type ProviderHttpResponse,
  type SpeechAdapter,
  type SpeechAnswer,
  type SpeechCall,
  type TokenUsage,
} from "../contract.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { parseTokenCount } from "../upstream/token-count.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { errorFromAnswer, errorFromEvent, errorFromTransport, isRecord } from "./error.ts";

/** What differs between the upstreams that speak this dialect. */
export interface SpeechDialectOptions {
  readonly http: ProviderHttp;
  /** Path with its version, as it follows the base URL: "/v1/audio/speech". */
  readonly path: string;
  /** Samples a second of what the upstream makes in either format; 24 kHz, mono, where left out. */
  readonly sampleRateHz?: number;
  /** Wall clock, for a Retry-After that names a date. */
  readonly nowMs?: () => number;
}

const maxEventCharacters = 16 * 1024 * 1024;
const drainTimeoutMs = 1_000;

/** Media types that cannot hold the format asked for; anything else that is audio or unnamed is taken. */
const foreignMediaTypes: Readonly<Record<AudioFormat, RegExp>> = {
  mp3: /\/(x-)?(wav|pcm|l16|raw|ogg|opus|flac|aac)\b/,
  pcm: /\/(x-)?(wav|mpeg|mp3|ogg|opus|flac|aac)\b/,
};

/** Makes the adapter. Its answers are mono. */
export function createSpeechAdapter(options: SpeechDialectOptions): SpeechAdapter {
  const nowMs = options.nowMs ?? Date.now;
  return {
    async synthesize(call, context) {
      const isEventStream = call.settings.stream === "sse";
      const response = await send(options, call, context, isEventStream);
      if (response.status !== 200) {
        throw await errorFromAnswer(response, nowMs(), [context.connection.apiKey, call.input]);
      }
      if (!isAcceptable(response.headers, call.format, isEventStream)) {
        response.cancel();
        throw new ProviderError("bad_answer", "The upstream's answer is not what was asked for.", {
          status: 200,
          cause: response.headers["content-type"],
        });
      }
      return isEventStream
        ? answerFromEvents(options, call, context, response)
        : answer(options, call, untilLeft(rawAudio(response, context.signal), response));
    },
  };
}

async function send(
  options: SpeechDialectOptions,
  call: SpeechCall,
  { connection, signal, onSent }: AttemptContext,
  isEventStream: boolean,
): Promise<ProviderHttpResponse> {
  const body = {
    ...call.options,
    model: call.upstreamModel,
    input: call.input,
    voice: call.voice,
    response_format: call.format,
    speed: call.speed === 1 ? undefined : call.speed,
    ...(call.instructions !== undefined && { instructions: call.instructions }),
    stream_format: isEventStream ? "sse" : undefined,
  };
  try {
    return await options.http.request({
      method: "POST",
      url: endpointUrl(connection.baseUrl, options.path),
      headers: { authorization: `Bearer ${connection.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
      onSent,
    });
  } catch (error) {
    throw errorFromTransport(error, signal);
  }
}

function isAcceptable(
  headers: Readonly<Record<string, string>>,
  format: AudioFormat,
  isEventStream: boolean,
): boolean {
  const mediaType = headers["content-type"]?.toLowerCase() ?? "";
  if (isEventStream) return mediaType.startsWith("text/event-stream");
  if (mediaType === "" || /^(application|binary)\/octet-stream\b/.test(mediaType)) return true;
  return mediaType.startsWith("audio/") && !foreignMediaTypes[format].test(mediaType);
}

function answer(
  options: SpeechDialectOptions,
  call: SpeechCall,
  audio: AsyncIterable<Uint8Array>,
  usage: () => TokenUsage | undefined = () => undefined,
): SpeechAnswer {
  return { format: call.format, sampleRateHz: options.sampleRateHz ?? 24_000, channels: 1, audio, usage };
}

async function* rawAudio(
  response: ProviderHttpResponse,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  let isEmpty = true;
  try {
    for await (const chunk of response.body) {
      isEmpty = false;
      yield chunk;
    }
  } catch (error) {
    throw errorFromTransport(error, signal);
  }
  if (isEmpty) throw emptyAnswer();
}

function answerFromEvents(
  options: SpeechDialectOptions,
  call: SpeechCall,
  context: AttemptContext,
  response: ProviderHttpResponse,
): SpeechAnswer {
  let usage: TokenUsage | undefined;
  const onDone = (event: Readonly<Record<string, unknown>>) => {
    usage = parseUsage(event.usage);
  };
  const audio = audioFromEvents(call, context, response, onDone);
  return answer(options, call, untilLeft(audio, response), () => usage);
}

async function* audioFromEvents(
  call: SpeechCall,
  { signal, connection }: AttemptContext,
  response: ProviderHttpResponse,
  onDone: (event: Readonly<Record<string, unknown>>) => void,
): AsyncGenerator<Uint8Array, undefined> {
  const events = decodeServerSentEvents(response.body, maxEventCharacters);
  let isEmpty = true;
  try {
    for (;;) {
      const next = await events.next();
      if (next.done) break;
      const event = parseEvent(next.value.data);
      if (event.type === "speech.audio.delta") {
        const audio = decodeAudio(event.audio);
        if (audio.length === 0) continue;
        isEmpty = false;
        yield audio;
      } else if (event.type === "speech.audio.done") {
        if (isEmpty) throw emptyAnswer();
        onDone(event);
        await drainBody(events, () => response.cancel(), drainTimeoutMs);
        return;
      } else if (event.type === "error" || isRecord(event.error)) {
        throw errorFromEvent(event, [connection.apiKey, call.input]);
      }
    }
  } catch (error) {
    throw errorFromTransport(error, signal);
  } finally {
    response.cancel();
  }
  throw new ProviderError("network", "The upstream's stream ended before its last event.");
}

function parseEvent(data: string): Readonly<Record<string, unknown>> {
  try {
    const event: unknown = JSON.parse(data);
    if (isRecord(event)) return event;
  } catch {
    // Falls through: look-alikes close with the bare word [DONE].
  }
  if (data.trim() === "[DONE]") return {};
  throw new ProviderError("bad_answer", "The upstream sent an event that is not a JSON object.");
}

/** Decodes strictly: what Buffer would skip or cut short is an error. */
function decodeAudio(base64: unknown): Uint8Array {
  const text = typeof base64 === "string" ? base64 : undefined;
  const audio = Buffer.from(text ?? "", "base64");
  const padding = text?.endsWith("==") ? 2 : text?.endsWith("=") ? 1 : 0;
  if (text === undefined || audio.length !== Math.floor((text.length * 3) / 4) - padding) {
    throw new ProviderError("bad_answer", "The upstream sent audio that is not base64.");
  }
  return audio;
}

function parseUsage(usage: unknown): TokenUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const completion = parseTokenCount(usage.output_tokens);
  return { prompt: parseTokenCount(usage.input_tokens), completion, audioCompletion: completion };
}

function emptyAnswer(): ProviderError {
  return new ProviderError("bad_answer", "The upstream's answer holds no audio.", { status: 200 });
}
