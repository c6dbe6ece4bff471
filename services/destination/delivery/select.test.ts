import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FilterRulesSchema } from "../../../gen/media/destination/v1/destination_pb.ts";
import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { existenceOperators, numberFields, textFields } from "../../../lib/limits/destination-limits.ts";
import type { Issue } from "../../../lib/runtime/domain-error.ts";
import { lostEvent, testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import {
  fromProtoFilterRules,
  numberComparisons,
  type StoredFilterRule,
  type StoredFilterRules,
  textComparisons,
  toProtoFilterRules,
} from "../settings/filter-rules.ts";
import { matches, samplePoint, selects } from "./select.ts";

/** Short texts over few letters, so that rules often nearly hold. */
const text = fc.string({ unit: fc.constantFrom("a", "b", "B", "."), maxLength: 4 });
const count = fc.bigInt({ min: 0n, max: 5n });

const anyEvent: fc.Arbitrary<GenerationEvent> = fc
  .record({
    model: text,
    providerSlug: text,
    sessionId: text,
    endUser: text,
    keyName: text,
    costNanoUsd: fc.constantFrom(0n, 1n, 500_000_000n, 1_000_000_000n, 1_500_000_000n),
    prompt: count,
    completion: count,
  })
  .map(({ prompt, completion, ...fields }) => usageEvent({ ...fields, tokens: { prompt, completion } }));

const anyRule: fc.Arbitrary<StoredFilterRule> = fc.oneof(
  fc.record({
    field: fc.constantFrom(...textFields, ...numberFields),
    operator: fc.constantFrom(...existenceOperators),
  }),
  fc.record({
    field: fc.constantFrom(...textFields),
    operator: fc.constantFrom(...textComparisons),
    value: text.filter((value) => value !== ""),
  }),
  fc.record({
    field: fc.constantFrom(...numberFields),
    operator: fc.constantFrom(...numberComparisons),
    value: fc.constantFrom(0, 0.5, 1, 1.5, 2, 3, 5, 1e-9),
  }),
);

const anyRules: fc.Arbitrary<StoredFilterRules> = fc.record({
  enabled: fc.boolean(),
  groups: fc.array(
    fc.record({
      logic: fc.constantFrom("and" as const, "or" as const),
      rules: fc.array(anyRule, { minLength: 1, maxLength: 4 }),
    }),
    { maxLength: 3 },
  ),
});

/** What rules mean, said another way: by looking at letters and at the order of numbers. */
function reference({ groups }: StoredFilterRules, event: GenerationEvent): boolean {
  const prompt = Number(event.tokens?.prompt ?? 0n);
  const completion = Number(event.tokens?.completion ?? 0n);
  const values: Record<string, string | number> = {
    model: event.model,
    provider: event.providerSlug,
    session_id: event.sessionId,
    user_id: event.endUser,
    api_key_name: event.keyName,
    total_cost: Number(event.costNanoUsd) / 1e9,
    total_tokens: prompt + completion,
    prompt_tokens: prompt,
    completion_tokens: completion,
  };
  const verdict = (rule: StoredFilterRule): boolean => {
    const actual = values[rule.field];
    if (actual === undefined) throw new Error(`no such field: ${rule.field}`);
    if (rule.operator.startsWith("not_")) {
      const positive = { ...rule, operator: rule.operator.slice(4) } as StoredFilterRule;
      return !verdict(positive);
    }
    if (!("value" in rule)) return typeof actual === "number" || actual.length > 0;
    const [a, b] = [actual, rule.value];
    const parts = Array.from(String(a), (_, start) => String(a).slice(start, start + String(b).length));
    const tests: Record<string, boolean> = {
      equals: a === b,
      contains: parts.includes(String(b)),
      starts_with: parts[0] === b,
      ends_with: [...String(a)]
        .reverse()
        .join("")
        .startsWith([...String(b)].reverse().join("")),
      gt: Math.sign(Number(a) - Number(b)) === 1,
      gte: Math.sign(Number(a) - Number(b)) !== -1,
      lt: Math.sign(Number(a) - Number(b)) === -1,
      lte: Math.sign(Number(a) - Number(b)) !== 1,
    };
    return tests[rule.operator] === true;
  };
  for (const { logic, rules } of groups) {
    const held = rules.filter(verdict).length;
    if (logic === "and" ? held < rules.length : held === 0) return false;
  }
  return true;
}

describe("filter rules", () => {
  test("mean what the plain reference says", () => {
    let held = 0;
    fc.assert(
      fc.property(anyRules, anyEvent, (rules, event) => {
        expect(matches(rules, event)).toBe(reference(rules, event));
        if (rules.groups.length > 0 && matches(rules, event)) held += 1;
      }),
      { numRuns: 3000 },
    );
    expect(held).toBeGreaterThan(200);
  });

  test("are the same after they were stored and shown", () => {
    fc.assert(
      fc.property(anyRules, (rules) => {
        const issues: Issue[] = [];
        const stored = fromProtoFilterRules(toProtoFilterRules(rules), issues);
        expect({ stored: JSON.parse(JSON.stringify(stored)), issues }).toEqual({ stored: rules, issues: [] });
      }),
    );
  });

  test("that are not enabled let everything through", () => {
    const never = { field: "model", operator: "equals", value: "nothing" } as const;
    const groups = [{ logic: "and", rules: [never] } as const];
    const selection = (enabled: boolean) => ({
      sampling_rate: 1,
      key_hashes: null,
      filter_rules: { enabled, groups },
    });
    expect([selects(selection(true), usageEvent()), selects(selection(false), usageEvent())]).toEqual([
      false,
      true,
    ]);
  });

  type Value = string | number | boolean | null;
  test.for<[string, string, Value | undefined, string]>([
    ["input", "contains", "a", "field"],
    ["output", "contains", "a", "field"],
    ["finish_reason", "equals", "stop", "field"],
    ["Model", "equals", "a", "field"],
    ["", "equals", "a", "field"],
    ["model", "regex", "a", "operator"],
    ["model", "gt", "a", "operator"],
    ["total_cost", "contains", 1, "operator"],
    ["model", "", "a", "operator"],
    ["model", "equals", 1, "value"],
    ["model", "equals", "", "value"],
    ["model", "equals", "a".repeat(257), "value"],
    ["model", "equals", undefined, "value"],
    ["model", "equals", null, "value"],
    ["model", "equals", true, "value"],
    ["total_cost", "gt", "1", "value"],
    ["total_cost", "gt", Number.NaN, "value"],
    ["total_cost", "gt", Number.POSITIVE_INFINITY, "value"],
    ["model", "exists", "a", "value"],
  ])("on %s %s %s are refused", ([field, operator, value, fault]) => {
    const kinds = { string: "stringValue", number: "numberValue", boolean: "boolValue", object: "nullValue" };
    const kind = { case: kinds[typeof value as keyof typeof kinds], value: value ?? 0 };
    const rule = { field, operator, ...(value === undefined ? {} : { value: { kind } }) };
    const fine = { field: "model", operator: "exists" };
    const message = create(FilterRulesSchema, { groups: [{ rules: [fine, rule] }] } as object);
    const issues: Issue[] = [];
    fromProtoFilterRules(message, issues);
    expect(issues.map(({ path }) => path)).toEqual([`filter_rules.groups.0.rules.1.${fault}`]);
  });

  test("are bounded in number", () => {
    const rule = { field: "model", operator: "exists" };
    const faults = (groups: object[]) => {
      const issues: Issue[] = [];
      fromProtoFilterRules(create(FilterRulesSchema, { groups } as object), issues);
      return issues.map(({ path }) => path);
    };
    expect(faults(Array(11).fill({ rules: [rule] }))).toEqual(["filter_rules.groups"]);
    expect(faults([{ rules: Array(21).fill(rule) }])).toEqual(["filter_rules.groups.0.rules"]);
    expect(faults([{ rules: [] }])).toEqual(["filter_rules.groups.0.rules"]);
    expect(faults([{ logic: 7, rules: [rule] }])).toEqual(["filter_rules.groups.0.logic"]);
    expect(faults([])).toEqual([]);
  });
});

test("only events of the keys that are named are selected", () => {
  const selection = { sampling_rate: 1, key_hashes: ["ab".repeat(32)], filter_rules: null };
  expect(selects(selection, usageEvent({ keyHash: "ab".repeat(32) }))).toBe(true);
  expect(selects(selection, usageEvent())).toBe(false);
});

describe("sampling", () => {
  const at = (sampling_rate: number) => ({ sampling_rate, key_hashes: null, filter_rules: null });
  const session = fc.string({ minLength: 1, maxLength: 20 });

  test("takes a session wholly or not at all, whatever else its events are", () => {
    fc.assert(
      fc.property(
        session,
        fc.double({ min: 0.0001, max: 1, noNaN: true }),
        anyEvent,
        anyEvent,
        (sessionId, rate, a, b) => {
          const events = [
            Object.assign(a, { sessionId, eventId: "gen-tts-a" }),
            Object.assign(b, { sessionId, eventId: "gen-img-b" }),
            lostEvent({ sessionId, eventId: "gen-tts-c" }),
          ];
          expect(new Set(events.map((event) => selects(at(rate), event))).size).toBe(1);
        },
      ),
    );
  });

  test("takes at a higher rate all that it takes at a lower one, and everything at 1", () => {
    const rate = fc.double({ min: 0.0001, max: 1, noNaN: true });
    fc.assert(
      fc.property(session, rate, rate, (sessionId, one, other) => {
        const event = usageEvent({ sessionId });
        const [low, high] = [Math.min(one, other), Math.max(one, other)];
        if (selects(at(low), event)) expect(selects(at(high), event)).toBe(true);
        expect(selects(at(1), event)).toBe(true);
      }),
    );
  });

  test.for([0.01, 0.1, 0.5, 0.9])("takes a share of %f of sessions, and of events without one", (rate) => {
    const total = 20_000;
    const indexes = Array.from({ length: total }, (_, index) => index);
    const points = {
      sessions: indexes.map((index) => samplePoint(usageEvent({ sessionId: `session-${index}` }))),
      events: indexes.map((index) => samplePoint(usageEvent({ eventId: `gen-tts-${index}` }))),
      accounts: indexes.map((index) =>
        samplePoint(usageEvent({ sessionId: "1", accountId: testUuid(index) })),
      ),
    };
    // Six standard deviations of a fair share.
    const tolerance = 6 * Math.sqrt((rate * (1 - rate)) / total);
    for (const [name, all] of Object.entries(points)) {
      const share = all.filter((point) => point < rate).length / total;
      expect(Math.abs(share - rate), name).toBeLessThan(tolerance);
    }
  });

  test("decides about both revisions of an event alike", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), (id) => {
        const eventId = `gen-tts-${id}`;
        expect(samplePoint(lostEvent({ eventId }))).toBe(samplePoint(usageEvent({ eventId })));
      }),
    );
  });
});
