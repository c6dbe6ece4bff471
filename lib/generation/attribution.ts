import type { HandlerContext } from "@connectrpc/connect";
import { principalOf } from "../identity/caller.ts";
import { requestIdKey } from "../rpc/request-context.ts";
import { spanKey } from "../runtime/span.ts";
import type { Attribution } from "./generation-event.ts";
import type { AttributionFields } from "./request-limits.ts";

/** Whom a call is charged to and what it is kept under. Throws `key_missing` when it speaks for nobody. */
export function attributionOf(
  { user, sessionId, trace }: AttributionFields,
  context: Pick<HandlerContext, "values">,
): Attribution {
  return {
    principal: principalOf(context),
    requestId: context.values.get(requestIdKey),
    user,
    sessionId,
    trace,
    span: context.values.get(spanKey),
  };
}
