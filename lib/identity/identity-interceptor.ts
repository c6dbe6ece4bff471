import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { byteHolderKey, requestLogKey } from "../rpc/request-context.ts";
import { peerAddressKey } from "../runtime/client-address.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { checkAccess, isForGenerating } from "./access.ts";
import type { KeyAuthenticator } from "./authenticate.ts";
import { type Caller, callerKey } from "./caller.ts";
import type { Audience } from "./issuer.ts";
import type { TokenVerifier } from "./service-token.ts";
import { type Strangers, strangerRefusal } from "./stranger.ts";

/** How a service learns who calls it. */
export interface IdentityOptions {
  /** The service: tokens for another one are refused. */
  audience: Audience;
  /** Who an API key speaks for; throws `key_unknown`, `key_expired`, `key_disabled` or `service_unavailable`. */
  authenticateKey: KeyAuthenticator;
  verifyToken: TokenVerifier;
  /** Counts who comes without a good key, by where the call comes from; nobody unless given. */
  strangers?: Strangers | undefined;
  clock?: Clock;
}

const bearerPattern = /^Bearer +([^\s]+) *$/i;

/** What a Bearer Authorization header carries (RFC 6750); undefined when there is none or of another scheme. */
export function bearerCredential(header: string | null | undefined): string | undefined {
  return header == null ? undefined : bearerPattern.exec(header)?.[1];
}

/**
 * Server side, inside of the server interceptor: establishes who calls from the Authorization header, an API key
 * (`sk-…`) or a service token, and refuses whom the access table does not name for the RPC. Handlers find the caller
 * under `callerKey`; the request's log names account and key from there on.
 */
export function createIdentityInterceptor(options: IdentityOptions): Interceptor {
  const { clock = systemClock } = options;
  return (next) => async (request) => {
    const caller = await identify(request, options);
    checkAccess(request.method, caller, clock.nowMs());
    const { contextValues } = request;
    contextValues.set(callerKey, caller);
    contextValues.set(byteHolderKey, byteHolder(caller));
    contextValues.set(requestLogKey, contextValues.get(requestLogKey).child(logFields(caller)));
    return next(request);
  };
}

type Call = Pick<UnaryRequest | StreamRequest, "header" | "contextValues" | "method">;

async function identify(call: Call, options: IdentityOptions): Promise<Caller> {
  const { header, contextValues, method } = call;
  const credential = bearerCredential(header.get("authorization"));
  const stranger = options.strangers?.at(
    contextValues.get(peerAddressKey),
    (name) => header.get(name) ?? undefined,
  );
  try {
    if (credential === undefined) {
      stranger?.count();
      return { kind: "anonymous" };
    }
    if (credential.startsWith("sk-")) {
      return { kind: "key", principal: await options.authenticateKey(credential, undefined, stranger) };
    }
  } catch (thrown) {
    throw strangerRefusal(thrown, credential, isForGenerating(method));
  }
  if (credential.split(".", 4).length !== 3) {
    throw new DomainError(ErrorReason.KEY_UNKNOWN, "neither an API key nor a token");
  }
  const { issuer, subject, principal } = await options.verifyToken(credential, options.audience);
  const acting = principal === undefined ? {} : { principal };
  if (issuer === "operator") return { kind: "operator", subject, ...acting };
  return { kind: "process", issuer, ...acting };
}

/** An account counts as one, however many keys it makes and whoever calls for it. */
function byteHolder(caller: Caller): string {
  if (caller.kind === "anonymous") return "";
  if (caller.kind === "operator") return `operator ${caller.subject}`;
  if (caller.principal !== undefined) return caller.principal.accountId;
  return caller.kind === "process" ? `process ${caller.issuer}` : "";
}

function logFields(caller: Caller): Record<string, string> {
  const fields: Record<string, string> = {};
  if (caller.kind === "operator") fields.operator = caller.subject;
  if (caller.kind === "process") fields.issuer = caller.issuer;
  const principal = caller.kind === "anonymous" ? undefined : caller.principal;
  return principal === undefined ? fields : { ...fields, ...principalLogFields(principal) };
}

/** What log lines say about a principal: the account and the first 12 characters of the key's hash. */
export function principalLogFields({ accountId, keyHash }: Principal): Record<string, string> {
  return { account_id: accountId, key_hash: keyHash.slice(0, 12) };
}
