import { setTimeout as delay } from "node:timers/promises";
import type { Batch } from "kafkajs";
import { gatherMs } from "../bus.ts";

/** What is worth a fetch, and a transaction, of its own. */
const enoughBytes = 64 * 1024;

/**
 * The pause between two fetches of a member that came to the end of its partitions. Brokers can wait for the first
 * message or for many, but not for a moment after the first; so a fetch waits for the first, and what was quiet is read
 * at once.
 */
export class KafkaGather {
  #fetchedMs = 0;
  #enough = new AbortController();

  /** Batches were fetched, or none. */
  fetched(): void {
    this.#fetchedMs = performance.now();
    this.#enough = new AbortController();
  }

  /**
   * Resolves when the moment since their fetch is over, or at once where more waits behind any of its batches: kafkajs
   * fetches again when all of them have been taken.
   */
  async wait({ messages, highWatermark }: Batch, signal: AbortSignal): Promise<void> {
    const last = BigInt(messages.at(-1)?.offset ?? 0);
    const bytes = messages.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
    if (last + 1n < BigInt(highWatermark) || bytes >= enoughBytes) this.#enough.abort();
    const leftMs = this.#fetchedMs + gatherMs - performance.now();
    if (leftMs <= 0) return;
    const ends = AbortSignal.any([signal, this.#enough.signal]);
    await delay(leftMs, undefined, { signal: ends }).catch(() => undefined);
  }
}
