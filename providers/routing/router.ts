import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type ProviderPreferences,
  ProviderSort,
} from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import type { Catalog, Endpoint, Medium } from "../catalog/catalog.ts";
import { type Candidate, candidatesOf, healthIdOf } from "./candidate.ts";
import type { EndpointHealth } from "./endpoint-health.ts";

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
  /** What the request may cost there, nano-USD, for `sort: price`. */
  price(endpoint: E): bigint;
}

/** What candidates are chosen from. */
export interface CandidateSources {
  readonly catalog: Catalog;
  readonly health: Pick<EndpointHealth, "read">;
  readonly providers: { isOn(providerSlug: string): boolean };
}

/** What a request asks of the endpoints of the model that it names. */
export interface RequestedModel<E extends Endpoint>
  extends Pick<RouteOptions<Candidate<E>>, "preferences" | "unsupported" | "price"> {
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
  { health, providers }: Omit<CandidateSources, "catalog">,
  ownKeys: ReadonlyMap<string, string>,
): readonly Candidate<E>[] {
  const endpoints = candidatesOf(offers, ownKeys, (slug) => providers.isOn(slug));
  if (endpoints.length === 0) throw unknownModel(medium);
  return routeCandidates({ ...options, endpoints, health });
}

/** Of a name that is no model of this medium here, whether or not it is one of another. */
function unknownModel(medium: Medium): DomainError {
  const kind = medium === "speech" ? "a speech" : "an image";
  return new DomainError(ErrorReason.MODEL_UNKNOWN, `no ${medium} model of this name`, {
    issues: [{ path: "model", message: `is not ${kind} model of this gateway` }],
  });
}

/**
 * The endpoints that may serve a request, best first; at least one. Own keys come before the operator's, then those of
 * `order`, then by `sort`, then as the catalogue has them; an endpoint of unknown speed goes before known ones, so that it
 * gets known. Endpoints with an open breaker are left out. Throws DomainError: `no_endpoint_left` after `only` and
 * `ignore`, `unsupported_parameter` with the issues of the endpoint that comes closest, `provider_overloaded` when every
 * breaker is open.
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
  const readings = new Map(able.map((endpoint) => [endpoint, health.read(healthIdOf(endpoint))]));
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
  const ranked = rank(healthy, options);
  return preferences?.allowFallbacks === false ? ranked.slice(0, 1) : ranked;
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

/** Sorting is stable, so what neither key decides stays as the catalogue has it. */
function rank<E extends RoutableEndpoint>(endpoints: readonly E[], options: RouteOptions<E>): readonly E[] {
  const order = options.preferences?.order ?? [];
  const key = sortKey(options);
  return endpoints
    .map((endpoint) => ({ endpoint, place: placeIn(order, endpoint.providerSlug), key: key(endpoint) }))
    .sort(
      (one, other) =>
        credentialRank(one.endpoint) - credentialRank(other.endpoint) ||
        one.place - other.place ||
        compare(one.key, other.key),
    )
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

/** What to order by, the lowest first. */
function sortKey<E extends RoutableEndpoint>(options: RouteOptions<E>): (endpoint: E) => number | bigint {
  const { preferences, health } = options;
  switch (preferences?.sort) {
    case ProviderSort.PRICE:
      return (endpoint) => options.price(endpoint);
    case ProviderSort.LATENCY:
      return (endpoint) => health.read(healthIdOf(endpoint)).firstOutputMs ?? -Infinity;
    case ProviderSort.THROUGHPUT:
      return (endpoint) => -(health.read(healthIdOf(endpoint)).unitsPerSecond ?? Infinity);
    default:
      return () => 0;
  }
}

function compare(one: number | bigint, other: number | bigint): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
