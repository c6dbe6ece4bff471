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
export interface Selection {
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
  const actual = fieldOf(rule.field, event);
  switch (rule.operator) {
    case "exists":
      return actual !== "";
    case "not_exists":
      return actual === "";
    default:
      return typeof actual === "string"
        ? compareTexts(rule.operator, actual, String(rule.value))
        : compareNumbers(rule.operator, actual, Number(rule.value));
  }
}

function compareTexts(operator: string, actual: string, value: string): boolean {
  switch (operator) {
    case "equals":
      return actual === value;
    case "not_equals":
      return actual !== value;
    case "contains":
      return actual.includes(value);
    case "not_contains":
      return !actual.includes(value);
    case "starts_with":
      return actual.startsWith(value);
    case "ends_with":
      return actual.endsWith(value);
    default:
      return false;
  }
}

function compareNumbers(operator: string, actual: number, value: number): boolean {
  switch (operator) {
    case "equals":
      return actual === value;
    case "not_equals":
      return actual !== value;
    case "gt":
      return actual > value;
    case "gte":
      return actual >= value;
    case "lt":
      return actual < value;
    case "lte":
      return actual <= value;
    default:
      return false;
  }
}

function fieldOf(field: TextField | NumberField, event: GenerationEvent): string | number {
  const { prompt = 0n, completion = 0n } = event.tokens ?? {};
  switch (field) {
    case "model":
      return event.model;
    case "provider":
      return event.providerSlug;
    case "session_id":
      return event.sessionId;
    case "user_id":
      return event.endUser;
    case "api_key_name":
      return event.keyName;
    case "total_cost":
      return usdNumber(event.costNanoUsd);
    case "total_tokens":
      return Number(prompt + completion);
    case "prompt_tokens":
      return Number(prompt);
    case "completion_tokens":
      return Number(completion);
  }
}

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
