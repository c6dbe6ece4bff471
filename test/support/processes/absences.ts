/** When something was away, monotonic milliseconds: from before its kill until it could be reached again. */
export interface Absence {
  readonly name: string;
  readonly fromMs: number;
  /** Infinity while it is away. */
  readonly toMs: number;
}

/** Who was away, and when. */
export class Absences {
  #all: readonly Absence[] = [];

  /** Oldest first. */
  get all(): readonly Absence[] {
    return this.#all;
  }

  /** It goes away now. */
  begin(name: string): void {
    this.#all = [...this.#all, { name, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY }];
  }

  /** It can be reached again. */
  end(name: string): void {
    const nowMs = performance.now();
    this.#all = this.#all.map((absence) =>
      absence.name === name ? { ...absence, toMs: Math.min(absence.toMs, nowMs) } : absence,
    );
  }
}
