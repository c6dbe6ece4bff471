import { setTimeout as pause } from "node:timers/promises";
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { errorFromTransport } from "./failure.ts";

/** How often to ask. */
export interface PollPace {
  /** Before the first question, and between it and the second, milliseconds. */
  readonly firstMs: number;
  /** Longest pause; each is half as long again as the one before. */
  readonly mostMs: number;
}

const growth = 1.5;

/**
 * Asks again and again until there is an answer, with pauses that grow. The signal, which is also the request's deadline,
 * ends it at once. Throws what `ask` throws, and ProviderError.
 */
export async function poll<T>(
  ask: () => Promise<T | undefined>,
  signal: AbortSignal,
  { firstMs, mostMs }: PollPace,
): Promise<T> {
  for (let pauseMs = firstMs; ; pauseMs = Math.min(mostMs, pauseMs * growth)) {
    await pause(pauseMs, undefined, { signal }).catch(() => {
      throw errorFromTransport(new OutboundHttpError("aborted", signal.reason), signal);
    });
    const answer = await ask();
    if (answer !== undefined) return answer;
  }
}
