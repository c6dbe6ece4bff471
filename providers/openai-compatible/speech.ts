/**
 * OpenAI's "create speech" as many upstreams speak it. The endpoint's `settings.stream` picks the answer's shape: absent, the
 * audio itself; "sse", events with base64 audio that end with the tokens used.
 *
 * - Audio goes on as it arrives, in the buffers that the socket filled ("sse": one buffer an event).
 * - The answer is whole when the body ends ("sse": with the event that says so); anything else throws.
 */
import { drainBody } from "../../lib/http/read-body.ts";
import {
  type AttemptContext,
  ProviderError,
  type SpeechAdapter,
  type SpeechCall,
  type TokenUsage,
  type UpstreamReport,
} from "../contract.ts";
import type { ProviderHttp, ProviderHttpResponse } from "../provider-http.ts";
import { answerOfBody, decodeAudio, emptyAnswer, mediaTypeOf, speechAnswer } from "../upstream/audio.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { jsonEvents } from "../upstream/events.ts";
import { errorFromEvent, errorFromTransport, isRecord } from "../upstream/failure.ts";
import { refuse, send } from "../upstream/send.ts";
import { parseTokenCount } from "../upstream/token-count.ts";

/** What differs between the upstreams that speak this dialect. */
export interface SpeechDialectOptions {
  readonly http: ProviderHttp;
  /** Path with its version, as it follows the base URL: "/v1/audio/speech". */
  readonly path: string;
  /** Wall clock, for a Retry-After that names a date. */
  readonly nowMs?: () => number;
}

const drainTimeoutMs = 1_000;

/** Makes the adapter. */
export function createSpeechAdapter({ http, path, nowMs }: SpeechDialectOptions): SpeechAdapter {
  return {
    async synthesize(call, context) {
      const { connection, signal, onSent } = context;
      const isEventStream = call.settings.stream === "sse";
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, path),
        headers: { authorization: `Bearer ${connection.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(bodyOf(call, isEventStream)),
        signal,
        onSent,
      };
      const response = await send(http, request, { secrets: secretsOf(call, context), nowMs });
      if (!isEventStream) return await answerOfBody(response, call, signal);
      if (!mediaTypeOf(response.headers).startsWith("text/event-stream")) throw refuse(response);
      const events = new AudioEvents(call, context, response);
      const report = () => events.report;
      const { format } = call;
      return await speechAnswer({ format, shape: call, audio: events.audio(), response, report });
    },
  };
}

function bodyOf(call: SpeechCall, isEventStream: boolean): Readonly<Record<string, unknown>> {
  return {
    ...call.options,
    model: call.upstreamModel,
    input: call.input,
    voice: call.voice,
    response_format: call.format,
    speed: call.speed === 1 ? undefined : call.speed,
    ...(call.instructions !== undefined && { instructions: call.instructions }),
    stream_format: isEventStream ? "sse" : undefined,
  };
}

/** The events of one answer. */
class AudioEvents {
  readonly #call: SpeechCall;
  readonly #context: AttemptContext;
  readonly #response: ProviderHttpResponse;
  /** What the last event says. */
  report: UpstreamReport | undefined;

  constructor(call: SpeechCall, context: AttemptContext, response: ProviderHttpResponse) {
    this.#call = call;
    this.#context = context;
    this.#response = response;
  }

  async *audio(): AsyncGenerator<Uint8Array, undefined> {
    const response = this.#response;
    const events = jsonEvents(response.body);
    let isEmpty = true;
    try {
      for (;;) {
        const next = await events.next();
        if (next.done) break;
        const event = next.value;
        if (event.type === "speech.audio.delta") {
          const audio = decodeAudio(event.audio);
          if (audio.length === 0) continue;
          isEmpty = false;
          yield audio;
        } else if (event.type === "speech.audio.done") {
          if (isEmpty) throw emptyAnswer();
          this.report = { tokens: parseUsage(event.usage) };
          await drainBody(events, () => response.cancel(), drainTimeoutMs);
          return;
        } else if (event.type === "error" || isRecord(event.error)) {
          throw errorFromEvent(event, secretsOf(this.#call, this.#context));
        }
      }
    } catch (error) {
      throw errorFromTransport(error, this.#context.signal);
    } finally {
      response.cancel();
    }
    throw new ProviderError("network", "The upstream's stream ended before its last event.");
  }
}

function secretsOf({ input }: SpeechCall, { connection }: AttemptContext): readonly string[] {
  return [connection.apiKey, input];
}

function parseUsage(usage: unknown): TokenUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const completion = parseTokenCount(usage.output_tokens);
  return { prompt: parseTokenCount(usage.input_tokens), completion, audioCompletion: completion };
}
