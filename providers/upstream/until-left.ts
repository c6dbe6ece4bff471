import type { ProviderHttpResponse } from "../provider-http.ts";

/**
 * What an answer yields, such that the upstream request ends at once when the consumer leaves; a read that waits then
 * ends too, and throws nothing.
 */
export function untilLeft<T>(
  output: AsyncGenerator<T, void>,
  response: Pick<ProviderHttpResponse, "cancel">,
): AsyncIterable<T> {
  let hasLeft = false;
  const iterator: AsyncIterator<T, void> = {
    next: () =>
      output.next().catch((error: unknown) => {
        if (hasLeft) return { done: true, value: undefined };
        throw error;
      }),
    return: () => {
      hasLeft = true;
      response.cancel();
      return output.return(undefined);
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}
