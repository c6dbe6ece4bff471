/** A message that may wait for company. */
export interface Gathered {
  /** Whether it is durable elsewhere, so that nobody waits for it. */
  readonly keptElsewhere: boolean;
  /** Whether it has been looked at, and was not kept elsewhere then. */
  lookedAt: boolean;
}

interface GatheringOptions {
  /** How long what is kept elsewhere waits, milliseconds. */
  readonly gatherMs: number;
  /** What waits now. */
  waiting(): readonly Gathered[];
  /** The moment is over for all that waits. */
  over(): void;
}

/** How often is looked for what is not kept elsewhere: such a message waits for one to two such times. */
const lookMs = 10;

/**
 * The moment in which messages gather. It begins with the first, and is over when that has waited for long enough, or when
 * one of them was to be kept elsewhere by now and isn't.
 */
export class Gathering {
  readonly #options: GatheringOptions;
  #end: NodeJS.Timeout | undefined;
  #look: NodeJS.Timeout | undefined;

  constructor(options: GatheringOptions) {
    this.#options = options;
  }

  /** Something has begun to wait. */
  join(): void {
    this.#end ??= setTimeout(() => this.#over(), this.#options.gatherMs);
    this.#look ??= setTimeout(() => this.#lookAt(), lookMs);
  }

  /** Nothing waits any more. */
  stop(): void {
    clearTimeout(this.#end);
    clearTimeout(this.#look);
    this.#end = this.#look = undefined;
  }

  #over(): void {
    this.stop();
    this.#options.over();
  }

  #lookAt(): void {
    this.#look = undefined;
    const unsafe = this.#options.waiting().filter(({ keptElsewhere }) => !keptElsewhere);
    if (unsafe.some(({ lookedAt }) => lookedAt)) {
      this.#over();
      return;
    }
    for (const each of unsafe) each.lookedAt = true;
    if (unsafe.length > 0) this.#look = setTimeout(() => this.#lookAt(), lookMs);
  }
}
