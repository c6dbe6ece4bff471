/**
 * Text to PCM, a stream of segments at a time.
 *
 * - A request is refused when too many segments wait for a thread; a stream that has begun never is.
 * - A stream has one segment with the pool at a time: the next one, while its consumer reads the one before. So at most
 *   two segments of audio are held for it, however slow the consumer.
 * - After an abort or an early return nothing more is given to the pool.
 */
import { type AttemptContext, ProviderError, type SpeechAdapter, type SpeechCall } from "../contract.ts";
import type { Segment } from "./flite-worker.ts";
import type { SegmentAudio, SegmentPool } from "./segment-pool.ts";
import { speakableText } from "./speakable-text.ts";
import { textSegments } from "./text-segments.ts";
import { abortedError } from "./worker-pool.ts";

const voices: ReadonlySet<string> = new Set(["slt", "rms", "awb"]);
const speeds = { min: 0.25, max: 4 };
const sampleRateHz = 24_000;
const maxChunkBytes = 16 * 1024;
/** About 16 s of audio and 0.2 s of work at speed 1; slower speech is cut shorter to stay near that. */
const maxSegmentWeight = 240;
const retryAfterMs = 1_000;

/** Speaks with the threads of `pool`; takes no request while `maxWaiting` or more segments wait for one. */
export function createSpeechAdapter(pool: SegmentPool, maxWaiting: number): SpeechAdapter {
  return {
    async synthesize(call: SpeechCall, { signal, onSent }: AttemptContext) {
      checkCall(call);
      const text = speakableText(call.input);
      if (text === "")
        throw new ProviderError("nothing_to_speak", "The text has nothing that can be spoken.");
      if (signal.aborted) throw abortedError(signal);
      if (pool.waiting >= maxWaiting) {
        throw new ProviderError("engine_full", "The engine is busy.", { retryAfterMs });
      }
      onSent();
      const texts = textSegments(text, maxSegmentWeight * Math.min(1, call.speed));
      const audio = new SpokenText(pool, texts, { voice: call.voice, speed: call.speed }, signal);
      return { format: "pcm", sampleRateHz, channels: 1, audio, report: () => undefined };
    },
  };
}

function checkCall({ voice, format, speed }: SpeechCall): void {
  if (format !== "pcm") throw new ProviderError("invalid_request", "The engine makes pcm only.");
  if (!voices.has(voice)) throw new ProviderError("invalid_request", "The engine has no such voice.");
  if (!(speed >= speeds.min && speed <= speeds.max)) {
    throw new ProviderError("invalid_request", "The engine has no such speed.");
  }
}

/** The audio of one text; begins to be made when constructed, and may be read once. */
class SpokenText implements AsyncIterable<Uint8Array> {
  readonly #pool: SegmentPool;
  readonly #texts: Iterator<string>;
  readonly #manner: Omit<Segment, "text">;
  readonly #signal: AbortSignal;
  readonly #stop = new AbortController();
  readonly #onAbort = () => this.#stop.abort(abortedError(this.#signal));
  #ahead: Promise<SegmentAudio> | undefined;

  constructor(
    pool: SegmentPool,
    texts: Iterator<string>,
    manner: Omit<Segment, "text">,
    signal: AbortSignal,
  ) {
    this.#pool = pool;
    this.#texts = texts;
    this.#manner = manner;
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort);
    this.#ahead = this.#nextSegment();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    const chunks = this.#chunks();
    return {
      next: () => chunks.next(),
      // Stops at once, also where the generator has not begun or waits for a segment.
      return: () => {
        this.#end();
        return chunks.return();
      },
    };
  }

  async *#chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      while (this.#ahead !== undefined) {
        const { buffer, byteOffset, byteLength } = await this.#ahead;
        this.#ahead = this.#nextSegment();
        for (let start = 0; start < byteLength; start += maxChunkBytes) {
          if (this.#stop.signal.aborted) throw abortedError(this.#stop.signal);
          yield new Uint8Array(buffer, byteOffset + start, Math.min(maxChunkBytes, byteLength - start));
        }
      }
    } finally {
      this.#end();
    }
  }

  #nextSegment(): Promise<SegmentAudio> | undefined {
    const { done, value: text } = this.#texts.next();
    if (done) return undefined;
    const audio = this.#pool.run({ text, ...this.#manner }, this.#stop.signal);
    // It may fail while nobody waits for it; the consumer gets the error when it comes to it.
    audio.catch(() => undefined);
    return audio;
  }

  #end(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#stop.abort();
  }
}
