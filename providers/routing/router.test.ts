import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ProviderSort } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { seededRandom } from "../../test/fakes/seeded-random.ts";
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
        recentOutage: readings.get(id)?.recentOutage ?? false,
        firstOutputMs: readings.get(id)?.firstOutputMs,
        unitsPerSecond: readings.get(id)?.unitsPerSecond,
      }),
    },
    price: ({ priceNanoUsd }) => priceNanoUsd,
    random: () => Math.random(),
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
  const ill = { recentOutage: true };

  test.each<[string, readonly Offer[], Partial<Preferences> | undefined, readonly string[]]>([
    ["by order first, the rest behind, the cheapest first", abc, { order: ["c"] }, ["c", "b", "a"]],
    ["by order, passing over the unknown", abc, { order: ["x", "c", "b"] }, ["c", "b", "a"]],
    [
      "all endpoints of one provider together",
      [offer("a.1"), offer("b"), offer("a.2")],
      { order: ["a"] },
      ["a.1", "a.2", "b"],
    ],
    ["only the wanted", abc, { only: ["c", "b"], sort: PRICE }, ["b", "c"]],
    ["without the ignored", abc, { ignore: ["a", "x"], sort: PRICE }, ["b", "c"]],
    ["ignore above only", abc, { only: ["a", "b"], ignore: ["a"] }, ["b"]],
    ["by price", abc, { sort: PRICE }, ["b", "c", "a"]],
    ["by order, then price", abc, { order: ["a"], sort: PRICE }, ["a", "b", "c"]],
    ["by latency, the unknown first", timed, { sort: LATENCY }, ["d", "b", "c", "a"]],
    ["by throughput, the unknown first", timed, { sort: THROUGHPUT }, ["d", "b", "c", "a"]],
    ["one alone without fallbacks", abc, { allowFallbacks: false, sort: PRICE }, ["b"]],
    ["all with fallbacks", abc, { allowFallbacks: true, sort: PRICE }, ["b", "c", "a"]],
    [
      "as the catalogue what costs the same",
      [offer("b"), offer("a"), offer("c")],
      { sort: PRICE },
      ["b", "a", "c"],
    ],
    [
      "by latency, the cheapest of the unknown first",
      [offer("a", { usd: 2n }), offer("b")],
      { sort: LATENCY },
      ["b", "a"],
    ],
    ["after an outage last", [offer("a", ill), offer("b", { usd: 9n })], undefined, ["b", "a"]],
    [
      "after an outage last of the free, too",
      [offer("a", { ...ill, usd: 0n }), offer("b")],
      undefined,
      ["b", "a"],
    ],
    ["by order whatever outage there was", [offer("a"), offer("b", ill)], { order: ["b"] }, ["b", "a"]],
    [
      "by price whatever outage there was",
      [offer("a", { usd: 2n }), offer("b", ill)],
      { sort: PRICE },
      ["b", "a"],
    ],
    [
      "own keys first, whatever outage there was",
      [offer("a"), offer("b", { ...ill, ownKey: "k" })],
      undefined,
      ["b", "a"],
    ],
    ["what is free first", [offer("a", { usd: 1n }), offer("b", { usd: 0n })], undefined, ["b", "a"]],
    ["without those that rest", [offer("a", down), offer("b")], { order: ["a"] }, ["b"]],
    ["without those that can't", [offer("a", { faults: 1 }), offer("b")], undefined, ["b"]],
  ])("%s", (_, offers, preferences, expected) => {
    expect(route(offers, preferences)).toEqual(expected);
  });

  test("by the price of this request where the caller knows it", () => {
    const prices: Readonly<Record<string, bigint>> = { a: 1n, b: 3n, c: 2n };
    expect(route(abc, { sort: PRICE }, { price: ({ id }) => prices[id] ?? 0n })).toEqual(["a", "c", "b"]);
  });

  test("by price with a seed, the same each time", () => {
    for (let times = 0; times < 20; times++) expect(route(abc, {}, { seed: 7 })).toEqual(["b", "c", "a"]);
  });

  test("by prices too large for numbers to distinguish", () => {
    const large = [offer("a", { usd: 2n ** 60n + 1n }), offer("b", { usd: 2n ** 60n })];
    expect(route(large, { sort: PRICE })).toEqual(["b", "a"]);
  });
});

describe("without a wish", () => {
  const rounds = 20_000;
  const shareOf = (first: string, offers: readonly Offer[], options: Partial<RouteOptions<Offer>> = {}) => {
    const random = seededRandom(11);
    const orders = Array.from({ length: rounds }, () => route(offers, undefined, { random, ...options }));
    return orders.filter((order) => order.join(" ").startsWith(first)).length / rounds;
  };

  test("goes first as often as one over its price squared, and so on among the rest", () => {
    const offers = [offer("c", { usd: 3n }), offer("b", { usd: 2n }), offer("a", { usd: 1n })];
    const weights = 1 + 1 / 4 + 1 / 9;
    expect(shareOf("a", offers)).toBeCloseTo(1 / weights, 2);
    expect(shareOf("b", offers)).toBeCloseTo(1 / 4 / weights, 2);
    expect(shareOf("a b c", offers)).toBeCloseTo((1 / weights) * (9 / 13), 2);
    expect(shareOf("c a b", offers)).toBeCloseTo((1 / 9 / weights) * (4 / 5), 2);
  });

  test("those that cost nothing share evenly before all others", () => {
    const offers = [offer("a", { usd: 1n }), offer("b", { usd: 0n }), offer("c", { usd: 0n })];
    expect(shareOf("b c a", offers)).toBeCloseTo(1 / 2, 2);
    expect(shareOf("c b a", offers)).toBeCloseTo(1 / 2, 2);
  });

  test("the price is that of this request", () => {
    const offers = [offer("a", { usd: 1n }), offer("b", { usd: 1n })];
    const price = ({ id }: Offer) => (id === "a" ? 2_000n : 1_000n);
    expect(shareOf("b", offers, { price })).toBeCloseTo(4 / 5, 2);
  });

  test("the keys of one endpoint stay together, in their order", () => {
    const keys = [0, 1, 2].map((operatorKey) => offer("a", { operatorKey }));
    const orders = new Set(Array.from({ length: 50 }, () => route([...keys, offer("b")]).join(" ")));
    expect([...orders].sort()).toEqual(["a a a b", "b a a a"]);
    expect(route([...keys, offer("b", { usd: 9n })], { sort: PRICE, allowFallbacks: false })).toEqual([
      ..."aaa",
    ]);
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
    fc.property(offers, preferences, fc.nat(), (parts, wish, chance) => {
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
      const routed = route(made, wish, { random: seededRandom(chance) });
      const all = route(made, { ...wish, allowFallbacks: true }, { random: seededRandom(chance) });
      expect([...all].sort()).toEqual(usable.map(({ id }) => id).sort());
      expect(routed).toEqual(wish.allowFallbacks === false ? all.slice(0, 1) : all);
      const places = all.map((id) => order.indexOf(id[0] ?? "")).map((at) => (at < 0 ? order.length : at));
      expect(places).toEqual(places.toSorted((one, other) => one - other));
      if (wish.sort !== ProviderSort.UNSPECIFIED || order.length > 0)
        expect(route(made, wish)).toEqual(routed);
    }),
  );
});
