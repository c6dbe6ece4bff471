/**
 * Prompts to pictures, a stream of tasks at a time.
 *
 * - A request is refused when too many tasks wait for a thread; one that has begun never is.
 * - A request has one task with the pool at a time: the next one, while its consumer takes the one before. So requests
 *   take turns, and at most two pictures are held for one, however slow its consumer.
 * - After an abort or an early return nothing more is given to the pool.
 * - The images of one request are those of its seed, of the seed after it, and so on.
 */
import { type PaletteColor, unrecognizedWords } from "@media-gateway/painter";
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  ProviderError,
} from "../contract.ts";
import { checkImageCall, type ImageModel, painterModel, postcardModel } from "./image-model.ts";
import type { ImageResult, ImageTask } from "./image-worker.ts";
import { abortedError, type WorkerPool } from "./worker-pool.ts";

/** Threads that paint. */
export type ImagePool = WorkerPool<ImageTask, ImageResult>;

interface ImageAdapterOptions {
  readonly pool: ImagePool;
  /** Tasks waiting for a thread at which new requests are refused. */
  readonly maxWaiting: number;
  /** A whole number, for requests without a seed. */
  randomSeed(): number;
}

const models: Readonly<Record<string, ImageModel>> = { painter: painterModel, postcard: postcardModel };
const retryAfterMs = 2_000;
/** The sizes of the previews of an image beside the image; of fewer, the last. */
const previews = [0.25, 0.5] as const;

/** Paints with the threads of a pool. */
export function createImageAdapter({ pool, maxWaiting, randomSeed }: ImageAdapterOptions): ImageAdapter {
  return {
    async generate(call: ImageCall, { signal, onSent }: AttemptContext) {
      const model = Object.hasOwn(models, call.upstreamModel) ? models[call.upstreamModel] : undefined;
      if (model === undefined) throw new ProviderError("invalid_request", "The engine has no such model.");
      checkImageCall(model, call);
      if (signal.aborted) throw abortedError(signal);
      if (pool.waiting >= maxWaiting) {
        throw new ProviderError("engine_full", "The engine is busy.", { retryAfterMs });
      }
      onSent();
      // No turn is given away between the check and the first task: else all who ask at once would pass.
      const palette = call.references.length === 0 ? [] : await readReferences(pool, call, signal);
      const tasks = tasksOf(model, call, palette, call.seed ?? randomSeed());
      const output = new PaintedImages(pool, tasks, signal);
      const answer = { output, report: () => undefined };
      if (!model.saysUnrecognized) return answer;
      return { ...answer, unrecognizedWords: unrecognizedWords(call.prompt) };
    },
  };
}

async function readReferences(
  pool: ImagePool,
  { references }: ImageCall,
  signal: AbortSignal,
): Promise<readonly PaletteColor[]> {
  const result = await pool.run({ kind: "palette", images: references.map(({ bytes }) => bytes) }, signal);
  if (result.kind === "palette") return result.colors;
  throw new ProviderError("invalid_request", "A reference is no image that can be read.");
}

type PaintTask = Extract<ImageTask, { kind: "paint" }>;

function* tasksOf(
  model: ImageModel,
  call: ImageCall,
  palette: readonly PaletteColor[],
  seed: number,
): Generator<PaintTask, void, undefined> {
  const { width, height } = call.size ?? model.usualSize;
  const quality = model.qualities && call.quality !== "auto" ? call.quality : "medium";
  const { prompt, format, compression } = call;
  for (let index = 0; index < call.n; index++) {
    const request = {
      prompt,
      // Exact also for the largest seeds.
      seed: String(BigInt(seed) + BigInt(index)),
      width,
      height,
      quality,
      transparent: call.background === "transparent",
      palette,
      look: model.look,
    };
    if (call.stream) {
      for (const zoom of previews.slice(
        Math.max(0, previews.length - (call.partialImages ?? previews.length)),
      ))
        yield { kind: "paint", request: { ...request, zoom }, format, compression };
    }
    yield { kind: "paint", request, format, compression };
  }
}

interface Ahead {
  readonly task: PaintTask;
  readonly result: Promise<ImageResult>;
}

/** The pictures of one request; begin to be painted when constructed, and may be read once. */
class PaintedImages implements AsyncIterable<ImageOutput> {
  readonly #pool: ImagePool;
  readonly #tasks: Iterator<PaintTask, void>;
  readonly #signal: AbortSignal;
  readonly #stop = new AbortController();
  readonly #onAbort = () => this.#stop.abort(abortedError(this.#signal));
  #ahead: Ahead | undefined;
  #partials = 0;

  constructor(pool: ImagePool, tasks: Iterator<PaintTask, void>, signal: AbortSignal) {
    this.#pool = pool;
    this.#tasks = tasks;
    this.#signal = signal;
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener("abort", this.#onAbort);
    this.#ahead = this.#next();
  }

  [Symbol.asyncIterator](): AsyncIterator<ImageOutput> {
    const outputs = this.#outputs();
    return {
      next: () => outputs.next(),
      // Stops at once, also where the generator has not begun or waits for a picture.
      return: () => {
        this.#end();
        return outputs.return();
      },
    };
  }

  async *#outputs(): AsyncGenerator<ImageOutput, void, undefined> {
    try {
      while (this.#ahead !== undefined) {
        const { task, result } = this.#ahead;
        const image = await result;
        this.#ahead = this.#next();
        if (image.kind !== "image") throw new ProviderError("upstream", "The engine failed.");
        const { bytes, mediaType } = image;
        if (task.request.zoom === undefined) yield { kind: "image", bytes, mediaType };
        else yield { kind: "partial", index: this.#partials++, bytes, mediaType };
        if (this.#stop.signal.aborted) throw abortedError(this.#stop.signal);
      }
    } finally {
      this.#end();
    }
  }

  #next(): Ahead | undefined {
    const { done, value: task } = this.#tasks.next();
    if (done) return undefined;
    const result = this.#pool.run(task, this.#stop.signal);
    // It may fail while nobody waits for it; the consumer gets the error when it comes to it.
    result.catch(() => undefined);
    return { task, result };
  }

  #end(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#stop.abort();
  }
}
