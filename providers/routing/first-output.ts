import { ProviderError } from "../contract.ts";

/** What one attempt runs under until its first output. */
export interface FirstOutputOptions<T> {
  /** Begins the attempt. Everything it begins must end with `signal`. */
  begin(signal: AbortSignal): Promise<T>;
  /** Frees a value that came after the attempt had lost. */
  readonly discard: ((value: T) => void | Promise<void>) | undefined;
  /** Ends the attempt. */
  readonly controller: AbortController;
  /** Of the whole work. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** The error of a request that is over, whatever this attempt does; undefined while it is not. */
  stop(): Error | undefined;
}

/**
 * Waits for an attempt, the end of all work and the time; the first of them decides. Throws what the attempt threw, what `stop`
 * says, or a ProviderError `timeout`.
 *
 * 1. An attempt that lost has been aborted by then and is not waited for. If its value comes all the same it is
 *    discarded; if it throws later nobody hears of it.
 * 2. After a win `controller` stays tied to `signal`.
 */
export function firstOutput<T>(options: FirstOutputOptions<T>): Promise<T> {
  const { controller, signal, stop, timeoutMs } = options;
  return new Promise((resolve, reject) => {
    let lost = false;
    const lose = (error: unknown) => {
      lost = true;
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
      controller.abort();
      reject(error);
    };
    const expire = () => lose(stop() ?? new ProviderError("timeout", "no first output in time"));
    // 2. After a win too: rejecting what is resolved already does nothing.
    const leave = () => lose(stop() ?? signal.reason);
    const timer = setTimeout(expire, timeoutMs);
    signal.addEventListener("abort", leave, { once: true });
    // An async function, so that what `begin` throws at once is a rejection too.
    const begun = (async () => await options.begin(controller.signal))();
    begun.then(
      (value) => {
        clearTimeout(timer);
        // 1.
        if (lost) discard(value, options);
        else resolve(value);
      },
      (error: unknown) => {
        if (!lost) lose(error); // 1.
      },
    );
  });
}

/** Nobody waits for it, and nothing can be done about its failure. */
function discard<T>(value: T, options: FirstOutputOptions<T>): void {
  Promise.try(async () => await options.discard?.(value)).catch(() => undefined);
}
