import { type ContextValues, createContextKey } from "@connectrpc/connect";

/**
 * How long a call holds what it was given of limits and budgets: until it has ended and all that was begun for it has,
 * too. Work goes on after a call whose caller left; what it takes must count until it is done.
 */
export class CallLife {
  readonly #frees: (() => void)[] = [];
  #open = 1;
  #callEnded = false;

  /** The call is not over before this work has settled, however it does. */
  keepUntil(work: Promise<unknown>): void {
    this.#open += 1;
    const settled = () => this.#close();
    work.then(settled, settled);
  }

  /** Runs `free` once, when the call is over; at once when it is over already. */
  whenOver(free: () => void): void {
    if (this.#open === 0) free();
    else this.#frees.push(free);
  }

  /** The call itself has ended, well or not; further calls do nothing. */
  end(): void {
    if (this.#callEnded) return;
    this.#callEnded = true;
    this.#close();
  }

  #close(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    for (const free of this.#frees.splice(0)) free();
  }
}

const callLifeKey = createContextKey<CallLife | undefined>(undefined, { description: "call life" });

/** The life of the call that a handler works on; made with the first question, by the outermost who asks. */
export function callLifeOf(values: ContextValues): CallLife {
  const known = values.get(callLifeKey);
  if (known !== undefined) return known;
  const life = new CallLife();
  values.set(callLifeKey, life);
  return life;
}

/** Ties the life of a call to its signal, which is aborted when the call ends, however it does, over every transport. */
export function beginCallLife({
  contextValues,
  signal,
}: {
  contextValues: ContextValues;
  signal: AbortSignal;
}): void {
  const life = callLifeOf(contextValues);
  if (signal.aborted) life.end();
  else signal.addEventListener("abort", () => life.end(), { once: true });
}
