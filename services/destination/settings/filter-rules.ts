import { create } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type FilterGroup,
  FilterGroupSchema,
  FilterLogic,
  type FilterRule,
  FilterRuleSchema,
  type FilterRules,
  FilterRulesSchema,
} from "../../../gen/media/destination/v1/destination_pb.ts";
import {
  equalityOperators,
  existenceOperators,
  filterBounds,
  numberFields,
  numberOperators,
  textFields,
  textOperators,
} from "../../../lib/limits/destination-limits.ts";
import type { Issue } from "../../../lib/runtime/domain-error.ts";

/** All operators on texts that compare. */
export const textComparisons = [...equalityOperators, ...textOperators] as const;
/** All operators on numbers that compare. */
export const numberComparisons = [...equalityOperators, ...numberOperators] as const;

/** A field of texts. */
export type TextField = (typeof textFields)[number];
/** A field of numbers. */
export type NumberField = (typeof numberFields)[number];

/** One condition, as stored. */
export type StoredFilterRule =
  | { readonly field: TextField | NumberField; readonly operator: (typeof existenceOperators)[number] }
  | { readonly field: TextField; readonly operator: (typeof textComparisons)[number]; readonly value: string }
  | {
      readonly field: NumberField;
      readonly operator: (typeof numberComparisons)[number];
      readonly value: number;
    };

/** Rules of which all or one must hold. */
export interface StoredFilterGroup {
  readonly logic: "and" | "or";
  readonly rules: readonly StoredFilterRule[];
}

/** Which events are delivered, as stored: those of which every group holds. */
export interface StoredFilterRules {
  readonly enabled: boolean;
  readonly groups: readonly StoredFilterGroup[];
}

const { groups: maxGroups, rules: maxRules, textCharacters: maxTextLength } = filterBounds;
/** Fields that other systems filter by and that no event of ours carries. */
const absentFields: readonly string[] = ["input", "output", "finish_reason"];

/** Reads filter rules; what is wrong goes to `issues`, with paths that begin with `filter_rules`. */
export function fromProtoFilterRules(
  { enabled = true, groups }: FilterRules,
  issues: Issue[],
): StoredFilterRules {
  const path = "filter_rules.groups";
  if (groups.length > maxGroups) issues.push({ path, message: `must not be more than ${maxGroups}` });
  return {
    enabled,
    groups: groups.slice(0, maxGroups).map((group, index) => readGroup(group, `${path}.${index}`, issues)),
  };
}

function readGroup({ logic, rules }: FilterGroup, path: string, issues: Issue[]): StoredFilterGroup {
  if (rules.length === 0) issues.push({ path: `${path}.rules`, message: "must not be empty" });
  if (rules.length > maxRules) {
    issues.push({ path: `${path}.rules`, message: `must not be more than ${maxRules}` });
  }
  if (!(Object.values(FilterLogic) as FilterLogic[]).includes(logic))
    issues.push({ path: `${path}.logic`, message: "must be and or or" });
  return {
    logic: logic === FilterLogic.OR ? "or" : "and",
    rules: rules
      .slice(0, maxRules)
      .flatMap((rule, index) => readRule(rule, `${path}.rules.${index}`, issues) ?? []),
  };
}

function readRule(rule: FilterRule, path: string, issues: Issue[]): StoredFilterRule | undefined {
  const textField = textFields.find((field) => field === rule.field);
  const field = textField ?? numberFields.find((name) => name === rule.field);
  if (field === undefined) {
    issues.push({ path: `${path}.field`, message: fieldFault(rule.field) });
    return undefined;
  }
  const existence = existenceOperators.find((name) => name === rule.operator);
  if (existence !== undefined) {
    if (isGiven(rule.value)) {
      issues.push({ path: `${path}.value`, message: `must not be given with ${existence}` });
    }
    return { field, operator: existence };
  }
  return textField === undefined
    ? readNumberRule(field as NumberField, rule, path, issues)
    : readTextRule(textField, rule, path, issues);
}

function fieldFault(field: string): string {
  if (absentFields.includes(field)) return "is nothing that events carry";
  return `must be one of ${[...textFields, ...numberFields].join(", ")}`;
}

function readTextRule(field: TextField, rule: FilterRule, path: string, issues: Issue[]) {
  const operator = textComparisons.find((name) => name === rule.operator);
  if (operator === undefined) issues.push(operatorFault(path, textComparisons));
  const { kind } = rule.value ?? {};
  const value = kind?.case === "stringValue" ? kind.value : "";
  const length = Array.from(value).length;
  if (length === 0 || length > maxTextLength || !value.isWellFormed()) {
    issues.push({ path: `${path}.value`, message: `must be a text of 1 to ${maxTextLength} characters` });
  }
  return operator && { field, operator, value };
}

function readNumberRule(field: NumberField, rule: FilterRule, path: string, issues: Issue[]) {
  const operator = numberComparisons.find((name) => name === rule.operator);
  if (operator === undefined) issues.push(operatorFault(path, numberComparisons));
  const { kind } = rule.value ?? {};
  const value = kind?.case === "numberValue" ? kind.value : Number.NaN;
  if (!Number.isFinite(value)) issues.push({ path: `${path}.value`, message: "must be a number" });
  return operator && { field, operator, value };
}

function operatorFault(path: string, operators: readonly string[]): Issue {
  const message = `must be one of ${[...operators, ...existenceOperators].join(", ")} for this field`;
  return { path: `${path}.operator`, message };
}

function isGiven(value: Value | undefined): boolean {
  return value !== undefined && value.kind.case !== undefined && value.kind.case !== "nullValue";
}

/** Filter rules as they are shown. */
export function toProtoFilterRules({ enabled, groups }: StoredFilterRules): FilterRules {
  return create(FilterRulesSchema, { enabled, groups: groups.map(toProtoGroup) });
}

function toProtoGroup({ logic, rules }: StoredFilterGroup): FilterGroup {
  return create(FilterGroupSchema, {
    logic: logic === "or" ? FilterLogic.OR : FilterLogic.AND,
    rules: rules.map(toProtoRule),
  });
}

function toProtoRule(rule: StoredFilterRule): FilterRule {
  const { field, operator } = rule;
  return create(FilterRuleSchema, { field, operator, ...("value" in rule ? toProtoValue(rule.value) : {}) });
}

function toProtoValue(value: string | number): { value: Value } {
  const kind =
    typeof value === "string"
      ? ({ case: "stringValue", value } as const)
      : ({ case: "numberValue", value } as const);
  return { value: create(ValueSchema, { kind }) };
}
