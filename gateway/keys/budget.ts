import Type, { type Static } from "typebox";
import { type Key, LimitReset } from "../../gen/media/account/v1/key_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { nullableEnum, nullableString, stringEnum } from "../schema/field-schemas.ts";

/** What bounds the spending of a key, in the form that clients of several bounds read; here there is the key's limit. */
export const keyBudgetSchema = Type.Object({
  scope: stringEnum(["key_limit"]),
  limit_usd: Type.Number({ minimum: 0 }),
  spend_usd: Type.Number({ minimum: 0, description: "What was spent of it in this period." }),
  remaining_usd: Type.Number({ description: "The limit less that; what is on hold is not taken off." }),
  reset_interval: nullableEnum(["daily", "weekly", "monthly"], { description: "As `limit_reset`." }),
  resets_at: nullableString({ format: "date-time", description: "When the next period begins." }),
  include_byok: Type.Boolean({ description: "As `include_byok_in_limit`." }),
  budget_id: Type.Null({ description: "Limits have none." }),
  guardrail_id: Type.Null({ description: "There are none." }),
});

type KeyBudget = Static<typeof keyBudgetSchema>;

interface Period {
  readonly word: KeyBudget["reset_interval"];
  /** Which sums of usage are the period's. */
  readonly sum: "totalNanoUsd" | "dailyNanoUsd" | "weeklyNanoUsd" | "monthlyNanoUsd";
  /** When the period that an instant is in ends, Unix milliseconds. */
  readonly endMs: (now: Date) => number | undefined;
}

const dayMs = 86_400_000;
const midnightMs = (now: Date) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());

const wholeLife: Period = { word: null, sum: "totalNanoUsd", endMs: () => undefined };

const periods: Readonly<Partial<Record<LimitReset, Period>>> = {
  [LimitReset.DAILY]: { word: "daily", sum: "dailyNanoUsd", endMs: (now) => midnightMs(now) + dayMs },
  [LimitReset.WEEKLY]: {
    word: "weekly",
    sum: "weeklyNanoUsd",
    // Sunday is 0, and weeks begin on Monday.
    endMs: (now) => midnightMs(now) + (7 - ((now.getUTCDay() + 6) % 7)) * dayMs,
  },
  [LimitReset.MONTHLY]: {
    word: "monthly",
    sum: "monthlyNanoUsd",
    endMs: (now) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1),
  },
};

/** The limit of a key as a budget; undefined when it has none. */
export function toKeyBudget(key: Key, nowMs: number): KeyBudget | undefined {
  const { limitNanoUsd, limitReset, includeByokInLimit, usage, byokUsage } = key;
  if (limitNanoUsd === undefined) return undefined;
  const { word, sum, endMs } = periods[limitReset] ?? wholeLife;
  const spent = (usage?.[sum] ?? 0n) + (includeByokInLimit ? (byokUsage?.[sum] ?? 0n) : 0n);
  const resetsMs = endMs(new Date(nowMs));
  return {
    scope: "key_limit",
    limit_usd: usdNumber(limitNanoUsd),
    spend_usd: usdNumber(spent),
    remaining_usd: usdNumber(limitNanoUsd - spent),
    reset_interval: word,
    resets_at: resetsMs === undefined ? null : new Date(resetsMs).toISOString(),
    include_byok: includeByokInLimit,
    budget_id: null,
    guardrail_id: null,
  };
}
