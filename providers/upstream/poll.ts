import { setTimeout as pause } from "node:timers/promises";
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { ProviderError, type ProviderErrorKind } from "../contract.ts";
import { errorFromTransport } from "./failure.ts";

/** How often to ask. */
export interface PollPace {
  /** Before the first question, and between it and the second, milliseconds. */
  readonly firstMs: number;
  /** Longest pause; each is half as long again as the one before. */
  readonly mostMs: number;
}

const growth = 1.5;
const mostFailuresInARow = 3;
const passing: ReadonlySet<ProviderErrorKind> = new Set(["overloaded", "network", "upstream", "timeout"]);

/**
 * Asks again and again until an answer holds a result, with pauses that grow. The signal, which is also the request's
 * deadline, ends it at once. A question that fails in passing is asked again, twice in a row at most: what is asked after
 * goes on meanwhile. Throws what `ask` and `resultOf` throw, and ProviderError.
 */
export async function poll<A, T>(
  ask: () => Promise<A>,
  resultOf: (answer: A) => T | undefined,
  signal: AbortSignal,
  { firstMs, mostMs }: PollPace,
): Promise<T> {
  let failures = 0;
  for (let pauseMs = firstMs; ; pauseMs = Math.min(mostMs, pauseMs * growth)) {
    await pause(pauseMs, undefined, { signal }).catch(() => {
      throw errorFromTransport(new OutboundHttpError("aborted", signal.reason), signal);
    });
    let answer: A;
    try {
      answer = await ask();
    } catch (error) {
      failures += 1;
      if (signal.aborted || failures === mostFailuresInARow || !mayPass(error)) throw error;
      continue;
    }
    failures = 0;
    const result = resultOf(answer);
    if (result !== undefined) return result;
  }
}

/** What is gone does not come back. */
function mayPass(error: unknown): boolean {
  return error instanceof ProviderError && passing.has(error.kind) && error.status !== 404;
}
