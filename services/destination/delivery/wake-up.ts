/** A wait that others can end. One who waits at a time; a wake-up that comes while nobody waits ends the next wait. */
export class WakeUp {
  #isDue = false;
  #end: (() => void) | undefined;

  wake(): void {
    this.#isDue = true;
    this.#end?.();
  }

  /** Resolves after so many milliseconds, or when woken. */
  async wait(ms: number): Promise<void> {
    if (!this.#isDue) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      this.#end = resolve;
      await promise;
      clearTimeout(timer);
      this.#end = undefined;
    }
    this.#isDue = false;
  }
}
