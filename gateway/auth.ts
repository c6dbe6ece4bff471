import type { Principal } from "../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { bearerCredential } from "../lib/identity/identity-interceptor.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import type { Span } from "../lib/runtime/span.ts";

/** Finds out who a key speaks for. Throws DomainError: key_unknown, key_expired, key_disabled, service_unavailable. */
export type Authenticate = (key: string, span?: Span) => Promise<Principal>;

/** Who may use a route: anybody, any key, an inference key of the scope, or a management key. */
export type Access = "open" | "any" | "speech" | "images" | "management";

/** The key of an Authorization header. Throws key_missing without one and key_unknown when it is malformed. */
export function keyFrom(authorization: string | undefined): string {
  if (authorization === undefined || authorization === "") {
    throw new DomainError(ErrorReason.KEY_MISSING, "the Authorization header is missing");
  }
  const key = bearerCredential(authorization);
  if (key === undefined) {
    throw new DomainError(ErrorReason.KEY_UNKNOWN, "the Authorization header is malformed");
  }
  return key;
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
