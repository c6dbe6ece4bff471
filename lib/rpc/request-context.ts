import { randomUUID } from "node:crypto";
import { createContextKey } from "@connectrpc/connect";
import { type Log, silentLog } from "../runtime/log.ts";

/** The header that names a request, in answers and between processes. */
export const requestIdHeader = "x-request-id";

/** The id of the request that a handler works on; empty outside one. */
export const requestIdKey = createContextKey<string>("", { description: "request id" });

/** The logger of the request that a handler works on; it writes the request id with every line. */
export const requestLogKey = createContextKey<Log>(silentLog, { description: "request log" });

/**
 * For whom the bytes of a call's request count: an account, or a process that acts for none. Set by who establishes it;
 * all that nobody is known to send counts together.
 */
export const byteHolderKey = createContextKey<string>("", { description: "holder of bytes" });

const validRequestId = /^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$/;

/** The client's own request id when it is 1 to 128 plain characters, else a new one. */
export function requestIdFrom(offered: string | null | undefined): string {
  return offered != null && validRequestId.test(offered) ? offered : `req-${randomUUID()}`;
}
