/** When to give something up: after a time in milliseconds, or when a signal fires. */
interface Limit {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * What `work` gives, unless its limit is reached before: then it rejects with the signal's reason or a TimeoutError, and
 * what `work` still does is nobody's concern.
 */
export function withLimit<T>(work: Promise<T>, { timeoutMs, signal }: Limit): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      settle();
    };
    const onAbort = () => end(() => reject(signal?.reason));
    const onTimeout = () =>
      end(() => reject(new DOMException(`not done in ${timeoutMs} ms`, "TimeoutError")));
    const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
    work.then(
      (result) => end(() => resolve(result)),
      (thrown: unknown) => end(() => reject(thrown)),
    );
  });
}
