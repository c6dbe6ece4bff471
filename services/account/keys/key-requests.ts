import type {
  CreateKeyRequest,
  ListKeysRequest,
  RotateKeyRequest,
  UpdateKeyRequest,
} from "../../../gen/media/account/v1/key_pb.ts";
import { isKeyHash } from "../../../lib/identity/api-key.ts";
import { keyPage, keyScopes, maxKeyGraceS } from "../../../lib/limits/key-limits.ts";
import { wordsOf } from "../../../lib/limits/words.ts";
import { fromProtoKeyKind, fromProtoKeyScope, fromProtoLimitReset } from "../convert.ts";
import { FieldIssues } from "../field-issues.ts";
import type { KeyKindName, KeyScopeName } from "../store.ts";
import type { KeyRotation } from "./key-rotation.ts";
import type { KeyChange, KeyPage, NewKey } from "./keys.ts";

const maxScopes = 16;
const allScopes: readonly KeyScopeName[] = wordsOf(keyScopes);

/** What a new key may be like. */
interface KeyBounds {
  readonly nowMs: number;
  /** The operator's ceiling of requests a minute. */
  readonly maxRateLimitPerMinute: number;
}

/** Reads a request for a new key; `path` stands before each issue's. Throws `invalid_body`. */
export function fromProtoCreateKeyRequest(request: CreateKeyRequest, bounds: KeyBounds, path = ""): NewKey {
  const issues = new FieldIssues();
  issues.checkName(`${path}name`, request.name);
  const kind = fromProtoKeyKind(request.kind);
  if (kind === undefined) issues.add(`${path}kind`, "is no kind of key");
  const scopes = readScopes(issues, path, request, kind);
  const expiresAt = request.expiresAt && issues.toDate(`${path}expires_at`, request.expiresAt);
  if (expiresAt !== undefined && expiresAt.getTime() <= bounds.nowMs) {
    issues.add(`${path}expires_at`, "must lie in the future");
  }
  checkLimits(issues, path, request, bounds);
  const limitReset = fromProtoLimitReset(request.limitReset);
  if (limitReset === undefined) issues.add(`${path}limit_reset`, "is no period");
  if (kind === "management") checkUnlimited(issues, path, request);
  if (request.memberId !== "") issues.checkUuid(`${path}member_id`, request.memberId);
  issues.throwIfAny();
  return {
    name: request.name,
    kind: kind ?? "inference",
    scopes,
    expires_at: expiresAt ?? null,
    limit_nano_usd: request.limitNanoUsd ?? null,
    limit_reset: limitReset ?? null,
    include_byok_in_limit: request.includeByokInLimit,
    rate_limit_per_minute: request.rateLimitPerMinute ?? null,
    member_id: request.memberId === "" ? null : request.memberId,
  };
}

function readScopes(
  issues: FieldIssues,
  path: string,
  { scopes }: CreateKeyRequest,
  kind: KeyKindName | undefined,
): KeyScopeName[] {
  if (kind === "management" && scopes.length > 0) {
    issues.add(`${path}scopes`, "must be empty for a management key");
  }
  if (scopes.length > maxScopes) issues.add(`${path}scopes`, `must not name more than ${maxScopes}`);
  const names = new Set<KeyScopeName>();
  for (const [index, scope] of scopes.slice(0, maxScopes).entries()) {
    const name = fromProtoKeyScope(scope);
    if (name === undefined) issues.add(`${path}scopes.${index}`, "is no scope");
    else names.add(name);
  }
  if (kind === "management") return [];
  return names.size === 0 ? [...allScopes] : allScopes.filter((scope) => names.has(scope));
}

type Limits = Pick<CreateKeyRequest, "limitNanoUsd" | "rateLimitPerMinute">;

function checkLimits(
  issues: FieldIssues,
  path: string,
  { limitNanoUsd, rateLimitPerMinute }: Limits,
  { maxRateLimitPerMinute }: Pick<KeyBounds, "maxRateLimitPerMinute">,
): void {
  if (limitNanoUsd !== undefined && limitNanoUsd < 0n)
    issues.add(`${path}limit_nano_usd`, "must not be negative");
  if (rateLimitPerMinute !== undefined) {
    const rateLimitPath = `${path}rate_limit_per_minute`;
    if (rateLimitPerMinute > maxRateLimitPerMinute) {
      issues.add(
        rateLimitPath,
        `must not be more than ${maxRateLimitPerMinute}, the most that a key may have here`,
      );
    } else issues.checkInteger(rateLimitPath, rateLimitPerMinute, 1, maxRateLimitPerMinute);
  }
}

function checkUnlimited(issues: FieldIssues, path: string, limits: Limits): void {
  if (limits.limitNanoUsd !== undefined) issues.add(`${path}limit_nano_usd`, "is for inference keys only");
  if (limits.rateLimitPerMinute !== undefined) {
    issues.add(`${path}rate_limit_per_minute`, "is for inference keys only");
  }
}

/** Reads a request to change a key; `path` stands before each issue's. Throws `invalid_body`. */
export function fromProtoUpdateKeyRequest(
  request: UpdateKeyRequest,
  bounds: Pick<KeyBounds, "maxRateLimitPerMinute">,
  path = "",
): KeyChange {
  const issues = new FieldIssues();
  if (request.name !== undefined) issues.checkName(`${path}name`, request.name);
  checkLimits(issues, path, request, bounds);
  const expiresAt = request.expiresAt && issues.toDate(`${path}expires_at`, request.expiresAt);
  const limitReset = request.limitReset === undefined ? undefined : fromProtoLimitReset(request.limitReset);
  if (request.limitReset !== undefined && limitReset === undefined) {
    issues.add(`${path}limit_reset`, "is no period");
  }
  issues.throwIfAny();
  return {
    name: request.name,
    disabled: request.disabled,
    expires_at: request.clearExpiresAt ? null : expiresAt,
    limit_nano_usd: request.clearLimit ? null : request.limitNanoUsd,
    limit_reset: limitReset,
    include_byok_in_limit: request.includeByokInLimit,
    rate_limit_per_minute: request.clearRateLimit ? null : request.rateLimitPerMinute,
  };
}

/** Reads which key is to be replaced; `path` stands before each issue's. Throws `invalid_body`. */
export function fromProtoRotateKeyRequest(request: RotateKeyRequest, path = ""): KeyRotation {
  const graceS = Number(request.graceS);
  const issues = new FieldIssues();
  checkHash(issues, `${path}hash`, request.hash);
  issues.checkInteger(`${path}grace_s`, graceS, 0, maxKeyGraceS);
  issues.throwIfAny();
  return { hash: request.hash, graceS };
}

/** Reads which keys are asked for. Throws `invalid_body`. */
export function fromProtoListKeysRequest(request: ListKeysRequest): KeyPage {
  const { offset, limit = keyPage.limit.default, includeDisabled } = request;
  const issues = new FieldIssues();
  issues.checkInteger("offset", offset, 0, keyPage.maxOffset);
  issues.checkInteger("limit", limit, 1, keyPage.limit.maximum);
  issues.throwIfAny();
  return { offset, limit, includeDisabled };
}

/** Checks the form of a key's hash. Throws `invalid_body`. */
export function checkKeyHash(hash: string, path = "hash"): string {
  const issues = new FieldIssues();
  checkHash(issues, path, hash);
  issues.throwIfAny();
  return hash;
}

function checkHash(issues: FieldIssues, path: string, hash: string): void {
  if (!isKeyHash(hash)) issues.add(path, "must be 64 lower-case hex characters");
}
