import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { KeyAuthenticator } from "../../lib/identity/authenticate.ts";
import { bearerCredential } from "../../lib/identity/identity-interceptor.ts";
import { type Stranger, type Strangers, strangerRefusal } from "../../lib/identity/stranger.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { isLimited } from "./error-body.ts";
import type { Exchange } from "./exchange.ts";

/** Finds out who a key speaks for. Throws DomainError: key_unknown, key_expired, key_disabled, service_unavailable. */
export type Authenticate = KeyAuthenticator;

/** Who may use a route: anybody, any key, an inference key of the scope, or a management key. */
export type Access = "open" | "any" | "speech" | "images" | "management";

/**
 * The key of an Authorization header. Throws key_missing without one and key_unknown when it is malformed, and counts
 * the stranger who sent it.
 */
function keyFrom(authorization: string | undefined, stranger: Stranger | undefined): string {
  const key = bearerCredential(authorization);
  if (key !== undefined) return key;
  stranger?.count();
  throw authorization === undefined || authorization === ""
    ? new DomainError(ErrorReason.KEY_MISSING, "the Authorization header is missing")
    : new DomainError(ErrorReason.KEY_UNKNOWN, "the Authorization header is malformed");
}

/**
 * Who a request is made for. Throws what its key is refused with and, for a stranger who came too often without a good
 * one, rate_limited where requests are limited, else key_missing or key_unknown, without a look-up.
 */
export async function identify(
  { request, span, operation }: Exchange,
  authenticate: Authenticate,
  strangers: Strangers | undefined,
): Promise<Principal> {
  const { headers, socket } = request;
  const { authorization } = headers;
  const stranger = strangers?.at(socket.remoteAddress, (name) => headerText(headers[name]));
  try {
    return await authenticate(keyFrom(authorization, stranger), span, stranger);
  } catch (thrown) {
    throw strangerRefusal(thrown, authorization || undefined, isLimited(operation));
  }
}

/** The first value of a header. */
export function headerText(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}

/** Throws inference_key_required, management_key_required or scope_missing when the key may not use a route. */
export function requireAccess(access: Access, principal: Principal): void {
  if (access === "open" || access === "any") return;
  const isManagement = principal.keyKind === KeyKind.MANAGEMENT;
  if (access === "management") {
    if (isManagement) return;
    throw new DomainError(ErrorReason.MANAGEMENT_KEY_REQUIRED, "this needs a management key");
  }
  if (isManagement) throw new DomainError(ErrorReason.INFERENCE_KEY_REQUIRED, "this needs an inference key");
  const scope = access === "speech" ? KeyScope.SPEECH : KeyScope.IMAGES;
  if (!principal.scopes.includes(scope)) {
    throw new DomainError(ErrorReason.SCOPE_MISSING, `the key lacks the scope ${access}`);
  }
}
