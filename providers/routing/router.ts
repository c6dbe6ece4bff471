import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type ProviderPreferences,
  ProviderSort,
} from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import type { Catalog, Endpoint, Medium } from "../catalog/catalog.ts";
import { type Candidate, candidatesOf, healthIdsOf } from "./candidate.ts";
import type { EndpointHealth, HealthReading } from "./endpoint-health.ts";

/** What the router must know of an endpoint. */
export type RoutableEndpoint = Candidate<Pick<Endpoint, "id" | "providerSlug">>;

/** What decides about candidates. */
export interface RouteOptions<E extends RoutableEndpoint> {
  /** All candidates of the model, in the catalogue's order of preference, those by own keys first. */
  readonly endpoints: readonly E[];
  /** Undefined: no preference. */
  readonly preferences: Omit<ProviderPreferences, "options" | "$typeName" | "$unknown"> | undefined;
  /** What of the request an endpoint can't do; empty when it can do all of it. */
  unsupported(endpoint: E): readonly Issue[];
  readonly health: Pick<EndpointHealth, "read">;
  /** What the request may cost there by the list, nano-USD. */
  price(endpoint: E): bigint;
  /** The request's; whoever gives one wants the same again, so nothing is left to chance. */
  readonly seed?: number | undefined;
  /** From 0 to below 1, as Math.random. */
  random(): number;
}

/** What candidates are chosen from. */
export interface CandidateSources {
  readonly catalog: Catalog;
  readonly health: Pick<EndpointHealth, "read">;
  readonly providers: { operatorKeys(providerSlug: string): number };
  /** From 0 to below 1, as Math.random. */
  random(): number;
}

/** What a request asks of the endpoints of the model that it names. */
export interface RequestedModel<E extends Endpoint>
  extends Pick<RouteOptions<Candidate<E>>, "preferences" | "unsupported" | "price" | "seed"> {
  readonly medium: Medium;
  /** None where nothing of this medium has the name. */
  readonly offers: readonly E[];
}

/**
 * The endpoints of a model that may serve a request, with the credential of each, best first. Throws `model_unknown` where
 * neither an own key (by provider) nor the operator's reaches any, and what `routeCandidates` throws.
 */
export function candidatesOfModel<E extends Endpoint>(
  { medium, offers, ...options }: RequestedModel<E>,
  { health, providers, random }: Omit<CandidateSources, "catalog">,
  ownKeys: ReadonlyMap<string, string>,
): readonly Candidate<E>[] {
  const endpoints = candidatesOf(offers, ownKeys, (slug) => providers.operatorKeys(slug));
  if (endpoints.length === 0) throw unknownModel(medium);
  return routeCandidates({ ...options, endpoints, health, random });
}

/** Of a name that is no model of this medium here, whether or not it is one of another. */
function unknownModel(medium: Medium): DomainError {
  const kind = medium === "speech" ? "a speech" : "an image";
  return new DomainError(ErrorReason.MODEL_UNKNOWN, `no ${medium} model of this name`, {
    issues: [{ path: "model", message: `is not ${kind} model of this gateway` }],
  });
}

/**
 * The endpoints that may serve a request, best first; at least one. Own keys come before the operator's. Among each:
 *
 * 1. Those of `order` first, then by `sort`; an endpoint of unknown speed goes before known ones, so that it gets known.
 * 2. Those that had an outage in the last 30 s go last.
 * 3. What costs nothing goes first. The rest is drawn by the weight 1/price², so that an endpoint at twice the price goes
 *    first a quarter as often. Nothing is drawn where `order`, `sort` or a seed is given: then the cheapest goes first.
 * 4. What is equal stays as the catalogue has it; the keys of one endpoint stay together.
 *
 * Endpoints with an open breaker are left out. Throws DomainError: `no_endpoint_left` after `only` and `ignore`,
 * `unsupported_parameter` with the issues of the endpoint that comes closest, `provider_overloaded` when every breaker is
 * open.
 */
export function routeCandidates<E extends RoutableEndpoint>(options: RouteOptions<E>): readonly E[] {
  const { endpoints, preferences, health } = options;
  const wanted = endpoints.filter(({ providerSlug }) => isWanted(providerSlug, preferences));
  if (wanted.length === 0) {
    throw new DomainError(
      ErrorReason.NO_ENDPOINT_LEFT,
      "no endpoint of this model is left by provider.only and ignore",
    );
  }
  const able = ableEndpoints(wanted, options);
  const readings = new Map(able.map((endpoint) => [endpoint, health.read(...healthIdsOf(endpoint))]));
  const waitOf = (endpoint: E) => readings.get(endpoint)?.retryAfterMs ?? 0;
  const healthy = able.filter((endpoint) => waitOf(endpoint) === 0);
  if (healthy.length === 0) {
    throw new DomainError(
      ErrorReason.PROVIDER_OVERLOADED,
      "every endpoint of this model rests after failures",
      {
        retryAfterMs: Math.min(...able.map(waitOf)),
      },
    );
  }
  const ranked = rank(healthy, readings, options);
  return preferences?.allowFallbacks === false ? firstAlone(ranked) : ranked;
}

/** With the other keys that the operator has there: another endpoint is what may not be tried. */
function firstAlone<E extends RoutableEndpoint>(ranked: readonly E[]): readonly E[] {
  const [first] = ranked;
  return ranked.filter(({ id, ownKey }) => id === first?.id && ownKey === first.ownKey);
}

function isWanted(slug: string, preferences: RouteOptions<RoutableEndpoint>["preferences"]): boolean {
  if (preferences === undefined) return true;
  const { only, ignore } = preferences;
  return (only.length === 0 || only.includes(slug)) && !ignore.includes(slug);
}

function ableEndpoints<E extends RoutableEndpoint>(
  endpoints: readonly E[],
  { unsupported }: RouteOptions<E>,
): readonly E[] {
  const checked = endpoints.map((endpoint) => ({ endpoint, issues: unsupported(endpoint) }));
  const able = checked.filter(({ issues }) => issues.length === 0);
  if (able.length === 0) {
    const closest = checked.reduce((best, other) =>
      other.issues.length < best.issues.length ? other : best,
    );
    throw DomainError.invalid(closest.issues, ErrorReason.UNSUPPORTED_PARAMETER);
  }
  return able.map(({ endpoint }) => endpoint);
}

/** A candidate and what it is ordered by, the lowest first. */
interface Ranked<E> {
  readonly endpoint: E;
  readonly keys: readonly (number | bigint)[];
}

/** Sorting is stable, so what no key decides stays as the catalogue has it. */
function rank<E extends RoutableEndpoint>(
  endpoints: readonly E[],
  readings: ReadonlyMap<E, HealthReading>,
  options: RouteOptions<E>,
): readonly E[] {
  const [only, ...others] = endpoints;
  if (only === undefined || others.length === 0) return endpoints;
  const order = options.preferences?.order ?? [];
  const costs = costKeys(endpoints, options);
  return endpoints
    .map((endpoint): Ranked<E> => {
      const reading = readings.get(endpoint);
      const keys = [
        credentialRank(endpoint),
        placeIn(order, endpoint.providerSlug), // 1.
        sortKey(endpoint, reading, options),
        reading?.recentOutage ? 1 : 0, // 2.
        ...(costs.get(endpoint.id) ?? []), // 3.
      ];
      return { endpoint, keys };
    })
    .sort(compare)
    .map(({ endpoint }) => endpoint);
}

/** What an account's own key serves costs it least, so own keys go first whatever else is wished. */
function credentialRank({ ownKey }: RoutableEndpoint): number {
  return ownKey === undefined ? 1 : 0;
}

function placeIn(order: readonly string[], slug: string): number {
  const place = order.indexOf(slug);
  return place === -1 ? order.length : place;
}

function sortKey<E extends RoutableEndpoint>(
  endpoint: E,
  reading: HealthReading | undefined,
  { preferences, price }: RouteOptions<E>,
): number | bigint {
  switch (preferences?.sort) {
    case ProviderSort.PRICE:
      return price(endpoint);
    case ProviderSort.LATENCY:
      return reading?.firstOutputMs ?? -Infinity;
    case ProviderSort.THROUGHPUT:
      return -(reading?.unitsPerSecond ?? Infinity);
    default:
      return 0;
  }
}

/**
 * What to order by as far as cost goes, by endpoint: the price, or one draw. By keys of -ln(u)/weight, u uniform, the lowest
 * comes first as often as its weight says, and so does the next among those left (Efraimidis and Spirakis,
 * https://doi.org/10.1016/j.ipl.2005.11.003).
 */
function costKeys<E extends RoutableEndpoint>(
  endpoints: readonly E[],
  { preferences, seed, price, random }: RouteOptions<E>,
): ReadonlyMap<string, readonly (number | bigint)[]> {
  const isSorted = preferences?.sort !== undefined && preferences.sort !== ProviderSort.UNSPECIFIED;
  const isDrawn = seed === undefined && !isSorted && (preferences?.order ?? []).length === 0;
  const keys = new Map<string, readonly (number | bigint)[]>();
  for (const endpoint of endpoints) {
    if (keys.has(endpoint.id)) continue;
    const cost = price(endpoint);
    if (!isDrawn) keys.set(endpoint.id, [cost]);
    else keys.set(endpoint.id, [cost === 0n ? 0 : 1, -Math.log(1 - random()) * (Number(cost) || 1) ** 2]);
  }
  return keys;
}

function compare(one: Ranked<unknown>, other: Ranked<unknown>): number {
  for (const [at, key] of one.keys.entries()) {
    const against = other.keys[at] ?? key;
    if (key !== against) return key < against ? -1 : 1;
  }
  return 0;
}
