import { createHash } from "node:crypto";
import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { usdNumber } from "../../../lib/money/nano-usd.ts";
import type {
  NumberField,
  StoredFilterGroup,
  StoredFilterRule,
  StoredFilterRules,
  TextField,
} from "../settings/filter-rules.ts";

/** What of a destination decides about which events it gets. */
interface Selection {
  readonly sampling_rate: number;
  readonly key_hashes: readonly string[] | null;
  readonly filter_rules: StoredFilterRules | null;
}

/** Whether a destination gets an event. A function of the two alone. */
export function selects(selection: Selection, event: GenerationEvent): boolean {
  const { sampling_rate, key_hashes, filter_rules } = selection;
  if (key_hashes !== null && !key_hashes.includes(event.keyHash)) return false;
  if (filter_rules?.enabled === true && !matches(filter_rules, event)) return false;
  return samplePoint(event) < sampling_rate;
}

/** Whether every group of the rules holds for an event. */
export function matches({ groups }: Pick<StoredFilterRules, "groups">, event: GenerationEvent): boolean {
  return groups.every((group) => holds(group, event));
}

function holds({ logic, rules }: StoredFilterGroup, event: GenerationEvent): boolean {
  const test = (rule: StoredFilterRule) => ruleHolds(rule, event);
  return logic === "or" ? rules.some(test) : rules.every(test);
}

function ruleHolds(rule: StoredFilterRule, event: GenerationEvent): boolean {
  const actual = fields[rule.field](event);
  if (!("value" in rule)) return (actual !== "") === (rule.operator === "exists");
  const holds =
    typeof actual === "string"
      ? compareTexts[rule.operator]?.(actual, String(rule.value))
      : compareNumbers[rule.operator]?.(actual, Number(rule.value));
  return holds ?? false;
}

const compareTexts: Readonly<Record<string, (actual: string, value: string) => boolean>> = {
  equals: (actual, value) => actual === value,
  not_equals: (actual, value) => actual !== value,
  contains: (actual, value) => actual.includes(value),
  not_contains: (actual, value) => !actual.includes(value),
  starts_with: (actual, value) => actual.startsWith(value),
  ends_with: (actual, value) => actual.endsWith(value),
};

const compareNumbers: Readonly<Record<string, (actual: number, value: number) => boolean>> = {
  equals: (actual, value) => actual === value,
  not_equals: (actual, value) => actual !== value,
  gt: (actual, value) => actual > value,
  gte: (actual, value) => actual >= value,
  lt: (actual, value) => actual < value,
  lte: (actual, value) => actual <= value,
};

const fields: Readonly<Record<TextField | NumberField, (event: GenerationEvent) => string | number>> = {
  model: ({ model }) => model,
  provider: ({ providerSlug }) => providerSlug,
  session_id: ({ sessionId }) => sessionId,
  user_id: ({ endUser }) => endUser,
  api_key_name: ({ keyName }) => keyName,
  total_cost: ({ costNanoUsd }) => usdNumber(costNanoUsd),
  total_tokens: ({ tokens }) => Number((tokens?.prompt ?? 0n) + (tokens?.completion ?? 0n)),
  prompt_tokens: ({ tokens }) => Number(tokens?.prompt ?? 0n),
  completion_tokens: ({ tokens }) => Number(tokens?.completion ?? 0n),
};

const twoTo48 = 2 ** 48;

/**
 * Where an event stands between 0 and 1: it is delivered where the rate is higher. All events of an account's session
 * stand at one point, whichever destination asks, so that what a lower rate lets through is part of what a higher one
 * does; an event without a session stands at a point of its own, in each of its revisions.
 */
export function samplePoint({ accountId, sessionId, eventId }: GenerationEvent): number {
  const name = sessionId === "" ? ["event", eventId] : ["session", accountId, sessionId];
  return createHash("sha256").update(JSON.stringify(name)).digest().readUIntBE(0, 6) / twoTo48;
}
