import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";

/** Who makes a call, as the identity interceptor established it. */
export type Caller =
  /** Nobody said; only health and reflection answer. */
  | { readonly kind: "anonymous" }
  /** A person's program with an API key of its own. */
  | { readonly kind: "key"; readonly principal: Principal }
  /** A process of this system, perhaps acting for a caller. */
  | { readonly kind: "process"; readonly issuer: string; readonly principal?: Principal }
  /** An operator with an admin token, perhaps to see what an account sees. */
  | { readonly kind: "operator"; readonly subject: string; readonly principal?: Principal };

/** The caller of the call that a handler works on. */
export const callerKey = createContextKey<Caller>({ kind: "anonymous" }, { description: "caller" });

/** For whom an outgoing call of this process is made; the service token then names them. */
export const actingForKey = createContextKey<Principal | undefined>(undefined, { description: "acting for" });

/** The account, key and scopes that a call speaks for. Throws `key_missing` when it speaks for none. */
export function principalOf(context: Pick<HandlerContext, "values">): Principal {
  const principal = principalIfAny(context);
  if (principal === undefined) throw new DomainError(ErrorReason.KEY_MISSING, "this call needs an API key");
  return principal;
}

/** The same, undefined when a call speaks for no account. */
export function principalIfAny({ values }: Pick<HandlerContext, "values">): Principal | undefined {
  const caller = values.get(callerKey);
  return caller.kind === "anonymous" ? undefined : caller.principal;
}

/** Who makes a call with an admin token. Throws `caller_not_allowed` for everyone else. */
export function operatorOf({ values }: Pick<HandlerContext, "values">): string {
  const caller = values.get(callerKey);
  if (caller.kind === "operator") return caller.subject;
  throw new DomainError(ErrorReason.CALLER_NOT_ALLOWED, "this call needs an admin token");
}
