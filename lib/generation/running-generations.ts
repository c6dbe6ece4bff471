/** The generations that are under way in a process, those whose callers have left included. */
export class RunningGenerations {
  readonly #running = new Set<Promise<unknown>>();

  /** How many there are. */
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
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, timeoutMs);
    let isLate = false;
    void late.promise.then(() => {
      isLate = true;
    });
    try {
      while (this.#running.size > 0 && !isLate) {
        await Promise.race([Promise.allSettled(this.#running), late.promise]);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
