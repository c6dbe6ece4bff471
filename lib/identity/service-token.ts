import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from "jose";
import { LRUCache } from "lru-cache";
import { type Principal, PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { DomainError } from "../runtime/domain-error.ts";
import type { Audience, Issuer } from "./issuer.ts";
import type { ServiceKey } from "./service-key.ts";
import type { ServiceKeySet } from "./service-key-set.ts";

/*
 * Service tokens: JWTs (RFC 7519) signed with EdDSA (RFC 8037). Claims: iss (the process, or `operator`), aud (the
 * service that shall accept it), iat, exp, sub (the operator's name), and principal (base64url of the Principal
 * message) when the process acts for a caller.
 * - A key vouches for its own issuer only, whatever the token says.
 * - A token lives 120 s; it is signed anew when less than 30 s of that are left.
 * - A checked token is remembered until it expires, and only as long as the set of keys is the one it was checked
 *   with.
 */

const lifetimeS = 120;
const renewBeforeS = 30;
/** How far the clocks of two machines may differ. */
const clockToleranceS = 10;
/** Well above a principal with the longest names. */
const maxTokenLength = 8192;
const maxOperatorLength = 128;
const maxSignedTokens = 10_000;
const maxCheckedTokens = 10_000;

/** Signs the tokens of this process. */
export interface TokenSigner {
  /** A token for calls to `audience`, on behalf of `principal` when given. Cached. */
  sign(audience: Audience, principal?: Principal): Promise<string>;
}

/** What a valid token says. */
export interface VerifiedToken {
  readonly issuer: Issuer;
  /** The operator's name; empty in tokens of processes. */
  readonly subject: string;
  readonly principal: Principal | undefined;
}

/** Checks a token for a service. Throws `key_expired` or `key_unknown`. */
export type TokenVerifier = (token: string, audience: Audience) => Promise<VerifiedToken>;

/** A signer with a private key; `subject` names the operator when the key is theirs. */
export function createTokenSigner(key: ServiceKey, subject = "", clock: Clock = systemClock): TokenSigner {
  const signed = new LRUCache<string, { token: Promise<string>; renewAtS: number }>({ max: maxSignedTokens });
  return {
    sign(audience, principal) {
      const nowS = Math.floor(clock.nowMs() / 1000);
      const encoded =
        principal === undefined
          ? ""
          : Buffer.from(toBinary(PrincipalSchema, principal)).toString("base64url");
      const cacheKey = `${audience} ${encoded}`;
      const known = signed.get(cacheKey);
      if (known !== undefined && nowS < known.renewAtS && nowS >= known.renewAtS - lifetimeS) {
        return known.token;
      }
      const token = signToken(key, subject, audience, encoded, nowS);
      signed.set(cacheKey, { token, renewAtS: nowS + lifetimeS - renewBeforeS });
      token.catch(() => signed.delete(cacheKey));
      return token;
    },
  };
}

function signToken(key: ServiceKey, subject: string, audience: Audience, principal: string, nowS: number) {
  const token = new SignJWT(principal === "" ? {} : { principal })
    .setProtectedHeader({ alg: "EdDSA", kid: key.keyId })
    .setIssuer(key.issuer)
    .setAudience(audience)
    .setIssuedAt(nowS)
    .setExpirationTime(nowS + lifetimeS);
  if (subject !== "") token.setSubject(subject);
  return token.sign(key.privateKey);
}

interface CheckedToken {
  readonly token: VerifiedToken;
  readonly audience: Audience;
  readonly expiresAtMs: number;
}

/** A verifier with the public keys of all issuers. */
export function createTokenVerifier(keys: ServiceKeySet, clock: Clock = systemClock): TokenVerifier {
  const checked = new LRUCache<string, CheckedToken>({ max: maxCheckedTokens });
  let version = keys.version;
  return async (token, audience) => {
    keys.touch();
    if (version !== keys.version) {
      version = keys.version;
      checked.clear();
    }
    const known = checked.get(token);
    if (known !== undefined && known.audience === audience && clock.nowMs() < known.expiresAtMs) {
      return known.token;
    }
    const fresh = await checkToken(keys, token, audience, new Date(clock.nowMs()));
    if (version === keys.version) checked.set(token, fresh);
    return fresh.token;
  };
}

async function checkToken(
  keys: ServiceKeySet,
  token: string,
  audience: Audience,
  currentDate: Date,
): Promise<CheckedToken> {
  if (token.length > maxTokenLength) throw refusedToken();
  try {
    const { kid } = decodeProtectedHeader(token);
    const key = typeof kid === "string" ? await keys.find(kid) : undefined;
    if (key === undefined) throw refusedToken();
    const { payload } = await jwtVerify(token, key.publicKey, {
      algorithms: ["EdDSA"],
      issuer: key.issuer,
      audience,
      requiredClaims: ["exp", "iat"],
      maxTokenAge: lifetimeS,
      clockTolerance: clockToleranceS,
      currentDate,
    });
    if (key.issuer === "operator" && !isOperatorName(payload.sub)) throw refusedToken();
    const verified: VerifiedToken = {
      issuer: key.issuer,
      subject: payload.sub ?? "",
      principal: decodePrincipal(payload.principal),
    };
    return { token: verified, audience, expiresAtMs: (payload.exp ?? 0) * 1000 };
  } catch (thrown) {
    if (thrown instanceof errors.JWTExpired) {
      throw new DomainError(ErrorReason.KEY_EXPIRED, "the token has expired", { cause: thrown });
    }
    throw thrown instanceof DomainError ? thrown : refusedToken(thrown);
  }
}

/** Whether a text can stand in the audit as an operator's name: 1 to 128 printable characters. */
export function isOperatorName(name: string | undefined): name is string {
  return name !== undefined && name !== "" && name.length <= maxOperatorLength && !/\p{C}/u.test(name);
}

function decodePrincipal(claim: unknown): Principal | undefined {
  if (claim === undefined) return undefined;
  if (typeof claim !== "string") throw new TypeError("the claim principal is no text");
  return fromBinary(PrincipalSchema, Buffer.from(claim, "base64url"));
}

function refusedToken(cause?: unknown): DomainError {
  return new DomainError(ErrorReason.KEY_UNKNOWN, "the token is not valid here", { cause });
}
