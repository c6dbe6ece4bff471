import type { ProviderHttpResponse } from "../provider-http.ts";

/**
 * What an answer yields, such that the upstream request ends at once when the consumer leaves; a read that waits then
 * ends too, and throws nothing.
 */
export function untilLeft<T>(
  output: AsyncIterableIterator<T, void>,
  response: Pick<ProviderHttpResponse, "cancel">,
): AsyncIterable<T> {
  let hasLeft = false;
  const failed = (error: unknown): IteratorResult<T, void> => {
    if (hasLeft) return { done: true, value: undefined };
    throw error;
  };
  const iterator: AsyncIterator<T, void> = {
    next: () => output.next().catch(failed),
    return: () => {
      hasLeft = true;
      response.cancel();
      return output.return?.() ?? Promise.resolve({ done: true, value: undefined });
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}
