/**
 * The frames of an answer, closed when `signal` fires while nobody is asking for the next one. Without this a generator
 * whose consumer has gone stays where it is and its `finally` never runs: no transport promises to resume a handler
 * after an abort. The generator must end by itself when `signal` fires while it works on a frame.
 */
export function closeOnAbort<T>(
  frames: AsyncGenerator<T, void, undefined>,
  signal: AbortSignal,
): AsyncIterableIterator<T, void> {
  let working = false;
  const close = () => {
    // Nobody is left who could be told of a failure; the generator has seen to it itself.
    if (!working) frames.return().catch(() => undefined);
  };
  signal.addEventListener("abort", close, { once: true });
  const rested = <R>(result: R): R => {
    working = false;
    if (signal.aborted) close();
    return result;
  };
  const failed = (thrown: unknown): never => {
    working = false;
    signal.removeEventListener("abort", close);
    throw thrown;
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      working = true;
      return frames.next().then((result) => {
        if (result.done) signal.removeEventListener("abort", close);
        return rested(result);
      }, failed);
    },
    return() {
      signal.removeEventListener("abort", close);
      return frames.return();
    },
  };
}
