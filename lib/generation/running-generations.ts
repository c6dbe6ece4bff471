import { withLimit } from "../runtime/with-limit.ts";

/** The generations that are under way in a process, those whose callers have left included. */
export class RunningGenerations {
  readonly #running = new Set<Promise<unknown>>();

  get count(): number {
    return this.#running.size;
  }

  /** Counts this one until it has settled, however it does. */
  add(generation: Promise<unknown>): void {
    this.#running.add(generation);
    const ended = () => void this.#running.delete(generation);
    generation.then(ended, ended);
  }

  /** Resolves when there is none, or after `timeoutMs`. */
  async ended(timeoutMs: number): Promise<void> {
    await withLimit(this.#allEnded(), { timeoutMs }).catch(() => undefined);
  }

  async #allEnded(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}
