import type { Endpoint } from "../catalog/catalog.ts";
import type { ProviderError } from "../contract.ts";
import { type Candidate, speaksForKey } from "./candidate.ts";

/** Whose turn it is among the candidates of one request. */
export class CandidateQueue<E extends Candidate<Pick<Endpoint, "id">>> {
  #left: readonly E[];
  #unreached: E | undefined;
  #triesAgain = false;

  constructor(candidates: readonly E[]) {
    this.#left = candidates;
  }

  /** Whether it is the turn of one that has had its turn. */
  get triesAgain(): boolean {
    return this.#triesAgain;
  }

  /** The next, each once; after all of them the last one that failed, where that was before it was reached, once more. */
  next(): E | undefined {
    const [next, ...left] = this.#left;
    this.#left = left;
    if (next !== undefined || this.#triesAgain) return next;
    this.#triesAgain = true;
    return this.#unreached;
  }

  /**
   * A candidate has failed, by an error after which others may be tried. Where the same endpoint would fail alike with
   * another of the operator's keys, those lose their turn.
   */
  failed(candidate: E, error: ProviderError, sent: boolean): void {
    this.#unreached = error.kind === "network" && !sent ? candidate : undefined;
    if (candidate.ownKey !== undefined || speaksForKey(error)) return;
    this.#left = this.#left.filter(({ id, ownKey }) => id !== candidate.id || ownKey !== undefined);
  }
}

const shortestPauseMs = 50;

/** Resolves after 50 to 100 ms, or at once with the end of all work. `random` is from 0 to below 1. */
export function pauseBeforeRetry({ signal, random }: PauseOptions): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, shortestPauseMs * (1 + random()));
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}

interface PauseOptions {
  readonly signal: AbortSignal;
  random(): number;
}
