import Type, { type Static } from "typebox";
import type { Key, KeyUsage } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { keyKinds, keyScopes, limitResets } from "../../lib/limits/key-limits.ts";
import { wordOf, wordsOf } from "../../lib/limits/words.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  nullableEnum,
  nullableInteger,
  nullableNumber,
  nullableString,
  stringEnum,
} from "../schema/field-schemas.ts";
import { formatInstant, formatOptionalInstant } from "../schema/utc-instant.ts";
import { keyBudgetSchema, toKeyBudget } from "./budget.ts";

const usd = (description: string) => Type.Number({ minimum: 0, description });

const spent = (what: string) => ({
  total: usd(`${what} in all, USD.`),
  daily: usd(`${what} since midnight UTC, USD.`),
  weekly: usd(`${what} since Monday, midnight UTC, USD.`),
  monthly: usd(`${what} since the first of the month, midnight UTC, USD.`),
});

const usage = spent("What was charged for it");
const byokUsage = spent("List price of what your own provider keys served for it");

const keyFields = {
  hash: Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256 of the key: its name everywhere." }),
  name: Type.String(),
  label: Type.String({ description: "The key masked." }),
  kind: stringEnum(wordsOf(keyKinds)),
  scopes: Type.Array(stringEnum(wordsOf(keyScopes)), {
    description: "What it may generate; a management key nothing.",
  }),
  disabled: Type.Boolean(),
  limit: nullableNumber({
    minimum: 0,
    description: "The most it may spend in a period, USD; null: no limit.",
  }),
  limit_remaining: nullableNumber({ minimum: 0, description: "What is left of it in this period, USD." }),
  limit_reset: nullableEnum(wordsOf(limitResets), {
    description: "When the limit starts anew; null: never.",
  }),
  include_byok_in_limit: Type.Boolean({
    description: "Whether the list price of what your own provider keys serve counts against the limit.",
  }),
  usage: usage.total,
  usage_daily: usage.daily,
  usage_weekly: usage.weekly,
  usage_monthly: usage.monthly,
  byok_usage: byokUsage.total,
  byok_usage_daily: byokUsage.daily,
  byok_usage_weekly: byokUsage.weekly,
  byok_usage_monthly: byokUsage.monthly,
  rate_limit_per_minute: nullableInteger({
    minimum: 1,
    description: "Requests a minute; null: the operator's default.",
  }),
  created_at: Type.String({ format: "date-time" }),
  updated_at: nullableString({ format: "date-time" }),
  last_used_at: nullableString({
    format: "date-time",
    description: "When a request last came with it, to about a minute; null: never.",
  }),
  expires_at: nullableString({ format: "date-time", description: "From when it is refused; null: never." }),
  creator_user_id: nullableString({ description: "The organization's member who made it." }),
  workspace_id: Type.String({ description: "The account." }),
  external_user: Type.Null({ description: "Not known here; kept for clients that read it." }),
};

const keySchema = Type.Object(keyFields);

/** The answer with one key. */
export const keyAnswerSchema = Type.Object({ data: keySchema });

/** The answer with a key just made, the only one that shows the key itself. */
export const newKeyAnswerSchema = Type.Object({
  data: keySchema,
  key: Type.String({ description: "The key itself, shown this once." }),
});

/** The answer of GET /keys. */
export const keyListSchema = Type.Object({
  data: Type.Array(keySchema, { description: "Newest first." }),
  total_count: Type.Integer({ minimum: 0, description: "How many there are on all pages." }),
});

const legacyRateLimitNote = "Kept for older clients: see rate_limit_per_minute.";

/** The answer of GET /key. */
export const currentKeyAnswerSchema = Type.Object({
  data: Type.Object({
    ...keyFields,
    is_management_key: Type.Boolean(),
    is_provisioning_key: Type.Boolean({ description: "The older name of is_management_key." }),
    is_free_tier: Type.Boolean({ description: "There is none: always false." }),
    free_model_daily_requests: Type.Object(
      { limit: Type.Integer(), used: Type.Integer(), remaining: Type.Integer() },
      { description: "There are none: always 0." },
    ),
    budgets: Type.Array(keyBudgetSchema, {
      description: "What bounds its spending: its limit, if it has one.",
    }),
    effective_budget: Type.Union([keyBudgetSchema, Type.Null()], { description: "The tightest of them." }),
    organization_id: nullableString({ description: "The account when it is an organization's." }),
    allowed_data_regions: Type.Array(stringEnum(["global"])),
    rate_limit: Type.Object(
      { requests: Type.Integer(), interval: Type.String(), note: Type.String() },
      { description: `${legacyRateLimitNote} -1: the operator's default.` },
    ),
  }),
});

type KeyBody = Static<typeof keySchema>;

/** A key as answers show it. Throws `internal` when a service answered without one. */
export function toKeyBody(key: Key | undefined): KeyBody {
  if (key === undefined) throw new DomainError(ErrorReason.INTERNAL, "an answer without its key");
  return {
    hash: key.hash,
    name: key.name,
    label: key.label,
    kind: wordOf(keyKinds, key.kind) ?? "inference",
    scopes: key.scopes.flatMap((scope) => wordOf(keyScopes, scope) ?? []),
    disabled: key.disabled,
    limit: optionalUsd(key.limitNanoUsd),
    limit_remaining: optionalUsd(key.limitRemainingNanoUsd),
    limit_reset: wordOf(limitResets, key.limitReset) ?? null,
    include_byok_in_limit: key.includeByokInLimit,
    ...toSpent("usage", key.usage),
    ...toSpent("byok_usage", key.byokUsage),
    rate_limit_per_minute: key.rateLimitPerMinute ?? null,
    created_at: formatInstant(key.createdAt),
    updated_at: formatOptionalInstant(key.updatedAt),
    last_used_at: formatOptionalInstant(key.lastUsedAt),
    expires_at: formatOptionalInstant(key.expiresAt),
    creator_user_id: key.memberId === "" ? null : key.memberId,
    workspace_id: key.accountId,
    external_user: null,
  };
}

/** The key that asks, as GET /key shows it now, with whether its account is an organization's. */
export function toCurrentKeyAnswer(
  key: Key | undefined,
  isOrganization: boolean,
  nowMs: number,
): Static<typeof currentKeyAnswerSchema> {
  const body = toKeyBody(key);
  const budget = key && toKeyBudget(key, nowMs);
  const isManagement = body.kind === "management";
  return {
    data: {
      ...body,
      is_management_key: isManagement,
      is_provisioning_key: isManagement,
      is_free_tier: false,
      free_model_daily_requests: { limit: 0, used: 0, remaining: 0 },
      budgets: budget === undefined ? [] : [budget],
      effective_budget: budget ?? null,
      organization_id: isOrganization ? body.workspace_id : null,
      allowed_data_regions: ["global"],
      rate_limit: {
        requests: body.rate_limit_per_minute ?? -1,
        interval: "1m",
        note: legacyRateLimitNote,
      },
    },
  };
}

function optionalUsd(nanoUsd: bigint | undefined): number | null {
  return nanoUsd === undefined ? null : usdNumber(nanoUsd);
}

type Spent<N extends string> = Record<N | `${N}_daily` | `${N}_weekly` | `${N}_monthly`, number>;

function toSpent<N extends "usage" | "byok_usage">(name: N, spending: KeyUsage | undefined): Spent<N> {
  return {
    [name]: usdNumber(spending?.totalNanoUsd ?? 0n),
    [`${name}_daily`]: usdNumber(spending?.dailyNanoUsd ?? 0n),
    [`${name}_weekly`]: usdNumber(spending?.weeklyNanoUsd ?? 0n),
    [`${name}_monthly`]: usdNumber(spending?.monthlyNanoUsd ?? 0n),
  } as Spent<N>;
}
