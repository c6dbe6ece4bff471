/**
 * Speech of Gemini's models (ai.google.dev, "Speech generation"): samples alone, as base64 in events.
 *
 * - Samples are little-endian, although RFC 2586 says otherwise of audio/L16.
 * - The answer is whole with the event that says that it stopped by itself; any other end throws.
 * - Instructions stand before the text, with a colon, as the vendor's guide writes them.
 */
import {
  type AttemptContext,
  ProviderError,
  type SpeechAdapter,
  type SpeechCall,
  type UpstreamReport,
} from "../contract.ts";
import type { ProviderHttp, ProviderHttpResponse } from "../provider-http.ts";
import { decodeAudio, emptyAnswer, type PcmShape, pcmShapeOf, speechAnswer } from "../upstream/audio.ts";
import { isEventStream } from "../upstream/audio-events.ts";
import { jsonEvents } from "../upstream/events.ts";
import { errorFromEvent, errorFromTransport, isRecord } from "../upstream/failure.ts";
import { refuse } from "../upstream/send.ts";
import { failureOfEnd, failuresOf, readContent, requestContent } from "./content.ts";

/** Makes the adapter. */
export function createSpeechAdapter(http: ProviderHttp): SpeechAdapter {
  return {
    async synthesize(call, context) {
      const model = call.upstreamModel;
      const request = {
        model,
        method: "streamGenerateContent?alt=sse",
        text: call.input,
        body: bodyOf(call),
      } as const;
      const response = await requestContent(http, request, context);
      if (!isEventStream(response)) throw refuse(response);
      const events = new AudioEvents(call, context, response);
      const audio = events.audio();
      const first = await audio.next();
      return await speechAnswer({
        format: "pcm",
        shape: events.shape,
        audio: withFirst(first, audio),
        response,
        report: () => events.report,
      });
    },
  };
}

function bodyOf({ input, instructions, voice, options }: SpeechCall): Readonly<Record<string, unknown>> {
  const text = instructions === undefined ? input : `${instructions.replace(/:?\s*$/, "")}: ${input}`;
  return {
    contents: [{ role: "user", parts: [{ text }] }],
    generationConfig: {
      ...options,
      responseModalities: ["AUDIO"],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } },
    },
  };
}

async function* withFirst(
  first: IteratorResult<Uint8Array, void>,
  rest: AsyncGenerator<Uint8Array, void>,
): AsyncGenerator<Uint8Array, void> {
  if (!first.done) yield first.value;
  yield* rest;
}

/** The events of one answer. */
class AudioEvents {
  readonly #call: SpeechCall;
  readonly #context: AttemptContext;
  readonly #response: ProviderHttpResponse;
  /** What the first samples say of all. */
  shape: PcmShape;
  /** What the last event says. */
  report: UpstreamReport | undefined;

  constructor(call: SpeechCall, context: AttemptContext, response: ProviderHttpResponse) {
    this.#call = call;
    this.#context = context;
    this.#response = response;
    this.shape = { sampleRateHz: call.sampleRateHz, channels: call.channels };
  }

  async *audio(): AsyncGenerator<Uint8Array, void> {
    let isEmpty = true;
    let finishReason: string | undefined;
    try {
      for await (const event of jsonEvents(this.#response.body)) {
        if (isRecord(event.error)) {
          const { secrets, meanings } = failuresOf(this.#call.input, this.#context);
          throw errorFromEvent(event, secrets, meanings);
        }
        const content = readContent(event);
        if (content.tokens !== undefined) this.report = { tokens: content.tokens };
        finishReason = content.finishReason ?? finishReason;
        for (const { mimeType, data } of content.inlineData) {
          const samples = decodeAudio(data);
          if (samples.length === 0) continue;
          if (isEmpty) this.shape = pcmShapeOf(pcmTypeOf(mimeType), this.shape);
          isEmpty = false;
          yield samples;
        }
      }
      const failure = failureOfEnd(finishReason);
      if (failure !== undefined) throw failure;
      if (isEmpty) throw emptyAnswer();
    } catch (error) {
      throw errorFromTransport(error, this.#context.signal);
    } finally {
      this.#response.cancel();
    }
  }
}

/** Anything but raw samples would be noise. */
function pcmTypeOf(mimeType: unknown): string {
  const type = String(mimeType).toLowerCase();
  if (/^audio\/(l16|pcm)\b/.test(type)) return type;
  throw new ProviderError("bad_answer", "The upstream's answer is not what was asked for.", {
    status: 200,
    cause: type,
  });
}
