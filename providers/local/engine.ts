import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import type { EnginePool, ImageAdapter, Provider, SpeechAdapter } from "../contract.ts";
import { createImageAdapter, type ImagePool } from "./image.ts";
import type { ImageTask } from "./image-worker.ts";
import { SegmentPool } from "./segment-pool.ts";
import { createSpeechAdapter } from "./speech.ts";
import { WorkerPool } from "./worker-pool.ts";

/** How much of the machine the engine may take. */
export interface LocalProviderOptions {
  /** Threads that speak; one fewer than the machine has unless given, at least 1 and at most 4. */
  readonly threads?: number;
  /** Segments waiting for a thread at which new requests are refused; 32 unless given. */
  readonly maxWaiting?: number;
  /** The longest that one segment may run, milliseconds; 20,000 unless given. */
  readonly segmentTimeoutMs?: number;
  /** Threads that paint; as many as speak unless given. */
  readonly imageThreads?: number;
  /** Pictures waiting for a thread at which new requests are refused; 64 unless given. */
  readonly maxWaitingImages?: number;
  /** The longest that one picture may take, milliseconds; 60,000 unless given. */
  readonly imageTimeoutMs?: number;
  /** Seeds for pictures whose request has none; random unless given. */
  randomSeed?(): number;
}

/** The running engine, and the pools that its adapters work with. */
export interface LocalProvider extends Provider {
  readonly speech: SpeechAdapter;
  readonly image: ImageAdapter;
  readonly pool: SegmentPool;
  readonly imagePool: ImagePool;
  close(): Promise<void>;
}

/** The engine in this process. Threads start with the first request of their medium and end with close(). */
export function createLocalProvider(options: LocalProviderOptions = {}): LocalProvider {
  const {
    threads = Math.min(4, Math.max(1, availableParallelism() - 1)),
    maxWaiting = 32,
    segmentTimeoutMs = 20_000,
    imageThreads = threads,
    maxWaitingImages = 64,
    imageTimeoutMs = 60_000,
    randomSeed = () => randomInt(2 ** 32),
  } = options;
  const pool = new SegmentPool({
    threads,
    segmentTimeoutMs,
    workerUrl: new URL("./flite-worker.ts", import.meta.url),
  });
  const imagePool = createImagePool(imageThreads, imageTimeoutMs);
  return {
    speech: createSpeechAdapter(pool, maxWaiting),
    image: createImageAdapter({ pool: imagePool, maxWaiting: maxWaitingImages, randomSeed }),
    pool,
    imagePool,
    enginePools: () => [countsOf("speech", pool), countsOf("image", imagePool)],
    close: async () => {
      await Promise.all([pool.close(), imagePool.close()]);
    },
  };
}

function countsOf(name: string, { running, waiting, completed }: Omit<EnginePool, "name">): EnginePool {
  return { name, running, waiting, completed };
}

/** Pixels from which on pictures are painted one at a time: those of 2K in 4:3, the fewest of that tier. */
const heavyPixels = 2_048 * 1_536;

/** Threads that paint. They are not those that speak, so that no speech waits for a picture. */
function createImagePool(threads: number, taskTimeoutMs: number): ImagePool {
  return new WorkerPool({
    threads,
    taskTimeoutMs,
    workerUrl: new URL("./image-worker.ts", import.meta.url),
    workerExport: "runImageTask" satisfies keyof typeof import("./image-worker.ts"),
    isHeavy,
    maxHeavy: 1,
  });
}

function isHeavy(task: ImageTask): boolean {
  if (task.kind !== "paint" || task.format === "svg") return false;
  const { width, height, zoom = 1 } = task.request;
  return width * height * zoom ** 2 >= heavyPixels;
}
