import type { CallOptions } from "@connectrpc/connect";
import type { Exchange } from "./exchange.ts";
import { fromServiceError, type WireNames } from "./service-error.ts";

/**
 * Calls a service for the caller of a request, for as long as the caller waits. Throws DomainError, whose issues name
 * fields as the REST interface does.
 */
export async function callService<T>(
  exchange: Exchange,
  call: (options: CallOptions) => Promise<T>,
  wireNames: WireNames = {},
): Promise<T> {
  try {
    return await call({ signal: exchange.clientGone, contextValues: exchange.callContext() });
  } catch (thrown) {
    throw fromServiceError(thrown, wireNames);
  }
}
