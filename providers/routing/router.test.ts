import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ProviderSort } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { HealthReading } from "./endpoint-health.ts";
import { type RoutableEndpoint, type RouteOptions, routeCandidates } from "./router.ts";

interface Offer extends RoutableEndpoint, Partial<HealthReading> {
  readonly faults?: number;
  readonly priceNanoUsd: bigint;
}

/** An endpoint `<slug>` or `<slug>.<number>`. */
const offer = (id: string, part: Partial<Offer> & { usd?: bigint } = {}): Offer => ({
  id,
  providerSlug: id.split(".")[0] ?? id,
  priceNanoUsd: part.usd ?? 1n,
  ...part,
});

type Preferences = NonNullable<RouteOptions<Offer>["preferences"]>;

function route(
  offers: readonly Offer[],
  preferences?: Partial<Preferences>,
  options: Partial<RouteOptions<Offer>> = {},
) {
  const readings = new Map(offers.map((each) => [each.id, each]));
  return routeCandidates({
    endpoints: offers,
    preferences: preferences && {
      order: [],
      only: [],
      ignore: [],
      sort: ProviderSort.UNSPECIFIED,
      ...preferences,
    },
    unsupported: ({ faults = 0 }) =>
      Array.from({ length: faults }, (_, at) => ({ path: `p${at}`, message: "no" })),
    health: {
      read: (id) => ({
        retryAfterMs: readings.get(id)?.retryAfterMs ?? 0,
        firstOutputMs: readings.get(id)?.firstOutputMs,
        unitsPerSecond: readings.get(id)?.unitsPerSecond,
      }),
    },
    price: ({ priceNanoUsd }) => priceNanoUsd,
    ...options,
  }).map(({ id }) => id);
}

function refusal(run: () => unknown): DomainError {
  try {
    run();
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

const { PRICE, LATENCY, THROUGHPUT } = ProviderSort;

describe("orders candidates", () => {
  const abc = [offer("a", { usd: 3n }), offer("b", { usd: 1n }), offer("c", { usd: 2n })];
  const timed = [
    offer("a", { firstOutputMs: 300, unitsPerSecond: 5 }),
    offer("b", { firstOutputMs: 100, unitsPerSecond: 9 }),
    offer("c", { firstOutputMs: 200, unitsPerSecond: 7 }),
    offer("d"),
  ];
  const down = { retryAfterMs: 1 };

  test.each<[string, readonly Offer[], Partial<Preferences> | undefined, readonly string[]]>([
    ["as the catalogue without preferences", abc, undefined, ["a", "b", "c"]],
    ["as the catalogue with empty preferences", abc, {}, ["a", "b", "c"]],
    ["by order first, the rest behind", abc, { order: ["c"] }, ["c", "a", "b"]],
    ["by order, passing over the unknown", abc, { order: ["x", "c", "b"] }, ["c", "b", "a"]],
    [
      "all endpoints of one provider together",
      [offer("a.1"), offer("b"), offer("a.2")],
      { order: ["a"] },
      ["a.1", "a.2", "b"],
    ],
    ["only the wanted", abc, { only: ["c", "b"] }, ["b", "c"]],
    ["without the ignored", abc, { ignore: ["a", "x"] }, ["b", "c"]],
    ["ignore above only", abc, { only: ["a", "b"], ignore: ["a"] }, ["b"]],
    ["by price", abc, { sort: PRICE }, ["b", "c", "a"]],
    ["by order, then price", abc, { order: ["a"], sort: PRICE }, ["a", "b", "c"]],
    ["by latency, the unknown first", timed, { sort: LATENCY }, ["d", "b", "c", "a"]],
    ["by throughput, the unknown first", timed, { sort: THROUGHPUT }, ["d", "b", "c", "a"]],
    ["one alone without fallbacks", abc, { allowFallbacks: false, sort: PRICE }, ["b"]],
    ["all with fallbacks", abc, { allowFallbacks: true }, ["a", "b", "c"]],
    ["without those that rest", [offer("a", down), offer("b")], { order: ["a"] }, ["b"]],
    ["without those that can't", [offer("a", { faults: 1 }), offer("b")], undefined, ["b"]],
  ])("%s", (_, offers, preferences, expected) => {
    expect(route(offers, preferences)).toEqual(expected);
  });

  test("by the price of this request where the caller knows it", () => {
    const prices: Readonly<Record<string, bigint>> = { a: 1n, b: 3n, c: 2n };
    expect(route(abc, { sort: PRICE }, { price: ({ id }) => prices[id] ?? 0n })).toEqual(["a", "c", "b"]);
  });

  test("by prices too large for numbers to distinguish", () => {
    const large = [offer("a", { usd: 2n ** 60n + 1n }), offer("b", { usd: 2n ** 60n })];
    expect(route(large, { sort: PRICE })).toEqual(["b", "a"]);
  });
});

describe("refuses", () => {
  test.each<[string, readonly Offer[], Partial<Preferences>]>([
    ["what only leaves empty", [offer("a")], { only: ["b"] }],
    ["what ignore leaves empty", [offer("a")], { ignore: ["a"] }],
    ["slugs in another case", [offer("a")], { only: ["A"] }],
  ])("%s: no_endpoint_left", (_, offers, preferences) => {
    expect(refusal(() => route(offers, preferences)).reason).toBe(ErrorReason.NO_ENDPOINT_LEFT);
  });

  test("what nobody can do: unsupported_parameter, with the issues of the closest", () => {
    const error = refusal(() =>
      route([offer("a", { faults: 3 }), offer("b", { faults: 1 }), offer("c", { faults: 2 })]),
    );
    expect(error.reason).toBe(ErrorReason.UNSUPPORTED_PARAMETER);
    expect(error.issues).toEqual([{ path: "p0", message: "no" }]);
  });

  test("what rests everywhere: provider_overloaded, with the shortest wait", () => {
    const error = refusal(() =>
      route([offer("a", { retryAfterMs: 900 }), offer("b", { retryAfterMs: 300 })]),
    );
    expect(error.reason).toBe(ErrorReason.PROVIDER_OVERLOADED);
    expect(error.retryAfterMs).toBe(300);
  });

  test("first by provider, then by ability, then by health", () => {
    const offers = [offer("a", { retryAfterMs: 1, faults: 1 }), offer("b", { retryAfterMs: 1 })];
    expect(refusal(() => route(offers, { only: ["c"] })).reason).toBe(ErrorReason.NO_ENDPOINT_LEFT);
    expect(refusal(() => route(offers, { only: ["a"] })).reason).toBe(ErrorReason.UNSUPPORTED_PARAMETER);
    expect(refusal(() => route(offers, { only: ["b"] })).reason).toBe(ErrorReason.PROVIDER_OVERLOADED);
  });
});

test("whatever is preferred, the candidates are the usable endpoints, once each, those of order first", () => {
  const slug: fc.Arbitrary<string> = fc.constantFrom("a", "b", "c", "d");
  const offers = fc.uniqueArray(
    fc.record({
      id: fc.tuple(slug, fc.nat(3)).map(([name, number]) => `${name}.${number}`),
      retryAfterMs: fc.constantFrom(0, 0, 0, 5),
      faults: fc.constantFrom(0, 0, 0, 1),
      usd: fc.bigInt({ min: 0n, max: 3n }),
      firstOutputMs: fc.option(fc.nat(3), { nil: undefined }),
      unitsPerSecond: fc.option(fc.nat(3), { nil: undefined }),
    }),
    { selector: ({ id }) => id, maxLength: 10 },
  );
  const preferences = fc.record({
    order: fc.array(slug, { maxLength: 3 }),
    only: fc.array(slug, { maxLength: 3 }),
    ignore: fc.array(slug, { maxLength: 2 }),
    allowFallbacks: fc.constantFrom(undefined, true, false),
    sort: fc.constantFrom(ProviderSort.UNSPECIFIED, PRICE, LATENCY, THROUGHPUT),
  });
  fc.assert(
    fc.property(offers, preferences, (parts, wish) => {
      const made = parts.map(({ id, ...part }) => offer(id, part));
      const { only, ignore, order } = wish;
      const usable = made.filter(
        ({ providerSlug, retryAfterMs, faults }) =>
          (only.length === 0 || only.includes(providerSlug)) &&
          !ignore.includes(providerSlug) &&
          retryAfterMs === 0 &&
          faults === 0,
      );
      if (usable.length === 0) {
        refusal(() => route(made, wish));
        return;
      }
      const routed = route(made, wish);
      const all = route(made, { ...wish, allowFallbacks: true });
      expect([...all].sort()).toEqual(usable.map(({ id }) => id).sort());
      expect(routed).toEqual(wish.allowFallbacks === false ? all.slice(0, 1) : all);
      const places = all.map((id) => order.indexOf(id[0] ?? "")).map((at) => (at < 0 ? order.length : at));
      expect(places).toEqual(places.toSorted((one, other) => one - other));
    }),
  );
});
