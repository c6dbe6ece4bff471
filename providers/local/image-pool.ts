import type { ImagePool } from "./image.ts";
import type { ImageTask } from "./image-worker.ts";
import { WorkerPool } from "./worker-pool.ts";

/** How large the pool is and what runs in it. */
export interface ImagePoolOptions {
  readonly threads: number;
  /** The longest that one picture may take, milliseconds. */
  readonly taskTimeoutMs: number;
  /** The module that exports runImageTask. */
  readonly workerUrl: URL;
}

/** Pixels from which on pictures are painted one at a time: those of 2K in 4:3, the fewest of that tier. */
const heavyPixels = 2_048 * 1_536;

/** Threads that paint. They are not those that speak, so that no speech waits for a picture. */
export function createImagePool({ threads, taskTimeoutMs, workerUrl }: ImagePoolOptions): ImagePool {
  return new WorkerPool({
    threads,
    taskTimeoutMs,
    workerUrl,
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
