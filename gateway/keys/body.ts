import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import Type, { type Static } from "typebox";
import {
  type CreateKeyRequest,
  CreateKeyRequestSchema,
  KeyKind,
  LimitReset,
  type UpdateKeyRequest,
  UpdateKeyRequestSchema,
} from "../../gen/media/account/v1/key_pb.ts";
import {
  keyKinds,
  keyScopes,
  limitResets,
  maxKeyGraceS,
  maxKeyRatePerMinute,
} from "../../lib/limits/key-limits.ts";
import { maxNameCharacters } from "../../lib/limits/record-name.ts";
import { wordsOf } from "../../lib/limits/words.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { bodyRules, compileCheck, type JsonObject, withoutNulls } from "../body/json-body.ts";
import type { WireNames } from "../http/service-call.ts";
import {
  namePattern,
  nameWords,
  nullableEnum,
  nullableInteger,
  nullableNumber,
  nullableString,
  stringEnum,
} from "../schema/field-schemas.ts";
import { nanoUsdFrom } from "../schema/usd-amount.ts";
import { parseUtcInstant } from "../schema/utc-instant.ts";

/** What 64 bits hold as nano-USD. */
const maxLimitUsd = 9_223_372_036;

/** What the service calls otherwise. */
export const keyWireNames: WireNames = { limit_nano_usd: "limit", member_id: "creator_user_id" };

const name = Type.String({
  minLength: 1,
  maxLength: maxNameCharacters,
  pattern: namePattern,
  description: "A name for people.",
});
const instantWords = "must be an instant in UTC such as 2027-12-31T23:59:59Z";
const patternWords = { name: nameWords, expires_at: instantWords };

const limitSchema = Type.Object({
  limit: Type.Optional(
    nullableNumber({
      minimum: 0,
      maximum: maxLimitUsd,
      description:
        "The most it may spend in a period, USD with at most 9 decimals; null: no limit of its own. Inference keys only.",
    }),
  ),
  limit_reset: Type.Optional(
    nullableEnum(wordsOf(limitResets), {
      description: "When the limit starts anew, at midnight UTC, weeks on Monday; null: never.",
    }),
  ),
  include_byok_in_limit: Type.Optional(
    Type.Boolean({
      description: "Whether the list price of what your own provider keys serve counts against the limit.",
    }),
  ),
  expires_at: Type.Optional(
    nullableString({
      format: "date-time",
      pattern: String.raw`(Z|\+00:00)$`,
      description:
        "From when it is refused, ISO 8601 in UTC, to the millisecond, before the year 10000; of a new key in the future; null: never.",
    }),
  ),
  rate_limit_per_minute: Type.Optional(
    nullableInteger({
      minimum: 1,
      maximum: maxKeyRatePerMinute,
      description:
        "Requests a minute; refused above the operator's ceiling; null: the operator's default. Inference keys only.",
    }),
  ),
});

/** Members whose null says something; elsewhere null counts as absent. */
const clearable: readonly string[] = ["limit", "limit_reset", "expires_at", "rate_limit_per_minute"];

/** The body of POST /keys. Unknown fields are ignored; null counts as absent. */
export const createKeyBodySchema = Type.Object(
  {
    name,
    kind: Type.Optional(stringEnum(wordsOf(keyKinds), { description: "Default inference." })),
    scopes: Type.Optional(
      Type.Array(stringEnum(wordsOf(keyScopes)), {
        minItems: 1,
        maxItems: wordsOf(keyScopes).length,
        description: "What it may generate; default everything. Not for management keys.",
      }),
    ),
    ...limitSchema.properties,
    creator_user_id: Type.Optional(
      nullableString({
        format: "uuid",
        description: "The organization's member it is for; default the calling key's own.",
      }),
    ),
  },
  bodyRules,
);

/** The body of PATCH /keys/{hash}: what is absent stays as it is. */
export const updateKeyBodySchema = Type.Object(
  {
    name: Type.Optional(name),
    disabled: Type.Optional(
      Type.Boolean({ description: "Whether it is refused; holds everywhere within 5 s." }),
    ),
    ...limitSchema.properties,
  },
  bodyRules,
);

/** The body of POST /keys/{hash}/rotate. */
export const rotateKeyBodySchema = Type.Object(
  {
    grace_s: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxKeyGraceS,
        description: "How long the old key still works, seconds; default 0: it is refused within 5 s.",
      }),
    ),
  },
  bodyRules,
);

const checkCreate = compileCheck(createKeyBodySchema, patternWords);
const checkUpdate = compileCheck(updateKeyBodySchema, patternWords);
const checkRotate = compileCheck(rotateKeyBodySchema);

/** The request that a body of POST /keys stands for. Throws invalid_body with its issues. */
export function toCreateKeyRequest(body: JsonObject): CreateKeyRequest {
  const fields = checkCreate(withoutNulls(body));
  return create(CreateKeyRequestSchema, {
    name: fields.name,
    kind: fields.kind === undefined ? KeyKind.UNSPECIFIED : keyKinds[fields.kind],
    scopes: (fields.scopes ?? []).map((scope) => keyScopes[scope]),
    memberId: fields.creator_user_id ?? "",
    ...readLimits(fields),
  });
}

/** The change that a body of PATCH /keys/{hash} stands for, of a key not named yet. Throws invalid_body. */
export function toUpdateKeyRequest(body: JsonObject): UpdateKeyRequest {
  const nulls = clearable.filter((member) => body[member] === null).map((member) => [member, null]);
  const fields = checkUpdate({ ...withoutNulls(body), ...Object.fromEntries(nulls) });
  return create(UpdateKeyRequestSchema, {
    clearLimit: fields.limit === null,
    clearExpiresAt: fields.expires_at === null,
    clearRateLimit: fields.rate_limit_per_minute === null,
    ...readLimits(fields),
    ...defined({ name: fields.name, disabled: fields.disabled }),
  });
}

/** How long the old key is to work, seconds, by a body of POST /keys/{hash}/rotate. Throws invalid_body. */
export function readGraceS(body: JsonObject): bigint {
  return BigInt(checkRotate(withoutNulls(body)).grace_s ?? 0);
}

type LimitFields = Static<typeof limitSchema>;

/** The limits that are set; those of null are not. Throws invalid_body with each fault that the schema can't see. */
function readLimits(fields: LimitFields) {
  const issues: { path: string; message: string }[] = [];
  const { limit, expires_at } = fields;
  const limitNanoUsd = limit == null ? undefined : nanoUsdFrom(limit);
  if (limit != null && limitNanoUsd === undefined) {
    issues.push({ path: "limit", message: "must not have more than 9 decimals" });
  }
  const expiresMs = expires_at == null ? undefined : parseUtcInstant(expires_at);
  if (expires_at != null && expiresMs === undefined) {
    issues.push({ path: "expires_at", message: instantWords });
  }
  if (issues.length > 0) throw DomainError.invalid(issues);
  return defined({
    limitNanoUsd,
    expiresAt: expiresMs === undefined ? undefined : timestampFromMs(expiresMs),
    limitReset: toProtoLimitReset(fields.limit_reset),
    includeByokInLimit: fields.include_byok_in_limit,
    rateLimitPerMinute: fields.rate_limit_per_minute ?? undefined,
  });
}

function toProtoLimitReset(reset: LimitFields["limit_reset"]): LimitReset | undefined {
  return reset === null ? LimitReset.UNSPECIFIED : reset && limitResets[reset];
}

/** Without the members that are undefined: in a message, unset and undefined differ. */
function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
