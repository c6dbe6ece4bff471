import { availableParallelism } from "node:os";
import type { Provider, ProviderManifest, SpeechAdapter } from "../contract.ts";
import { SegmentPool } from "./segment-pool.ts";
import { createSpeechAdapter } from "./speech.ts";

/** How much of the machine the engine may take. */
export interface LocalProviderOptions {
  /** Threads that speak; one fewer than the machine has unless given, at least 1 and at most 4. */
  readonly threads?: number;
  /** Segments waiting for a thread at which new requests are refused; 32 unless given. */
  readonly maxWaiting?: number;
  /** The longest that one segment may run, milliseconds; 20,000 unless given. */
  readonly segmentTimeoutMs?: number;
}

/** The running engine, and the pool that its adapter speaks with. */
export interface LocalProvider extends Provider {
  readonly speech: SpeechAdapter;
  readonly pool: SegmentPool;
  close(): Promise<void>;
}

/** The engine in this process. Threads start with the first request and end with close(). */
export function createLocalProvider(options: LocalProviderOptions = {}): LocalProvider {
  const {
    threads = Math.min(4, Math.max(1, availableParallelism() - 1)),
    maxWaiting = 32,
    segmentTimeoutMs = 20_000,
  } = options;
  const workerUrl = new URL("./flite-worker.ts", import.meta.url);
  const pool = new SegmentPool({ threads, segmentTimeoutMs, workerUrl });
  return { speech: createSpeechAdapter(pool, maxWaiting), close: () => pool.close(), pool };
}

/** The engine that is part of the product: no key, no network. */
export const local: ProviderManifest = {
  slug: "local",
  defaultBaseUrl: "",
  needsKey: false,
  create: () => createLocalProvider(),
};
