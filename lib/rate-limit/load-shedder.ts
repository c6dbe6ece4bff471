/*
 * Decides by what the process can carry which requests begin.
 * 1. At most `maxInFlight` at a time, each counted once however many parts of the process hold it, and none more while
 *    the event loop has been late for `maxDelayMs` for a while.
 * 2. First come, first served: at most `maxWaiting` wait, for at most `maxWaitMs`; the rest is refused at once.
 * 3. What was admitted is let finish.
 */
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { intVar, millisecondsVar } from "../runtime/config.ts";
import { DomainError } from "../runtime/domain-error.ts";
import type { LoopDelay } from "../runtime/loop-delay.ts";
import { HeldIds } from "./held-ids.ts";
import { once, throwIfGone } from "./limiter.ts";

/** What a process that generates, or passes on what was generated, can carry. */
export const loadSpec = {
  MAX_INFLIGHT_REQUESTS: intVar(1, 100_000)({ default: 256 }),
  MAX_LOOP_DELAY_MS: millisecondsVar({ default: 250 }),
} as const;

/** What a process can carry; times in milliseconds. */
export interface LoadShedderOptions {
  readonly maxInFlight: number;
  /** How late the event loop may be, look after look. */
  readonly maxDelayMs: number;
  readonly loopDelay: Pick<LoopDelay, "begin" | "end" | "lastingMs">;
  /** How many may wait for a place; defaults to an eighth of `maxInFlight`. */
  readonly maxWaiting?: number;
  /** How long each of them may; defaults to 250. */
  readonly maxWaitMs?: number;
  /** From 0 to 1; spreads when those who were refused come again. */
  readonly random?: () => number;
}

/** Why a request was refused: as many run as may, or the event loop is late. */
type ShedCause = "requests" | "loop_delay";

/** The least and the most of a Retry-After, milliseconds. */
const [leastRetryMs, mostRetryMs] = [1000, 3000];

/** Lets in what the process can carry. */
export class LoadShedder {
  readonly #options: LoadShedderOptions;
  readonly #held = new HeldIds();
  readonly #waiting = new Set<() => void>();
  readonly #refused: Record<ShedCause, number> = { requests: 0, loop_delay: 0 };

  constructor(options: LoadShedderOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#held.size;
  }

  /** Requests refused so far, by cause. */
  get refused(): Readonly<Record<ShedCause, number>> {
    return this.#refused;
  }

  /**
   * Lets a request in and gives what is to be called once it has ended. One whose id is in already comes in with it.
   * Throws `overloaded`, with when to come again, or `cancelled` when `signal` is aborted by then.
   */
  async admit(id: string, signal?: AbortSignal): Promise<() => void> {
    throwIfGone(signal);
    if (!this.#held.has(id)) {
      // 3.
      const { loopDelay, maxDelayMs, maxInFlight, maxWaiting = Math.ceil(maxInFlight / 8) } = this.#options;
      if (loopDelay.lastingMs >= maxDelayMs) throw this.#refusal("loop_delay"); // 1.
      if (this.#held.size >= maxInFlight || this.#waiting.size > 0) {
        // 2.
        if (this.#waiting.size >= maxWaiting) throw this.#refusal("requests"); // 2.
        return this.#wait(id, signal);
      }
    }
    return this.#hold(id);
  }

  #hold(id: string): () => void {
    const { loopDelay } = this.#options;
    this.#held.hold(id);
    loopDelay.begin();
    return once(() => {
      loopDelay.end();
      this.#held.letGo(id);
      this.#letIn();
    });
  }

  #letIn(): void {
    for (const admit of this.#waiting) {
      if (this.#held.size >= this.#options.maxInFlight) return;
      admit();
    }
  }

  #wait(id: string, signal: AbortSignal | undefined): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.#waiting.delete(admit);
    };
    const admit = () => {
      stop();
      resolve(this.#hold(id));
    };
    const onAbort = () => {
      stop();
      reject(new DomainError(ErrorReason.CANCELLED, "the caller went away"));
    };
    const timer = setTimeout(() => {
      stop();
      reject(this.#refusal("requests"));
    }, this.#options.maxWaitMs ?? 250);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#waiting.add(admit);
    return promise;
  }

  #refusal(cause: ShedCause): DomainError {
    this.#refused[cause] += 1;
    const { random = Math.random } = this.#options;
    const retryAfterMs = leastRetryMs + random() * (mostRetryMs - leastRetryMs);
    return new DomainError(ErrorReason.OVERLOADED, "the process carries all that it can", { retryAfterMs });
  }
}
