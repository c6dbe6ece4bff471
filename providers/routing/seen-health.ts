import type { Endpoint } from "../catalog/catalog.ts";
import { candidatesOf, healthIdsOf } from "./candidate.ts";
import type { EndpointHealth, LastFailure } from "./endpoint-health.ts";

/** Where what was seen of endpoints comes from. */
export interface HealthSources {
  readonly health: EndpointHealth;
  readonly providers: { operatorKeys(slug: string): number };
}

/** What this process has lately seen of an endpoint, over all of the operator's keys. */
export interface SeenHealth {
  /** Whether no key of the operator's gets to it now. */
  readonly breakerOpen: boolean;
  /** Attempts that ended in the last half hour, other than by being given up, and those that failed. */
  readonly ended: number;
  readonly failed: number;
  readonly firstOutputMs: number | undefined;
  readonly unitsPerSecond: number | undefined;
  readonly lastFailure: LastFailure | undefined;
}

/** Reads it. Where the operator has no key, it is what accounts' own keys have met. */
export function seenHealth(
  endpoint: Pick<Endpoint, "id" | "providerSlug">,
  { health, providers }: HealthSources,
): SeenHealth {
  const operators = candidatesOf([endpoint], new Map(), (slug) => providers.operatorKeys(slug));
  const candidates = operators.length > 0 ? operators : [{ ...endpoint, ownKey: "" }];
  const readings = candidates.map((candidate) => health.read(...healthIdsOf(candidate)));
  const ids = candidates.map(healthIdsOf);
  const [endpointId = endpoint.id] = ids[0] ?? [];
  // What speaks for a key is counted there alone, what came whole at both.
  const keys = ids.flatMap(([, keyId]) => keyId ?? []);
  const { ended, failed } = health.outcomes(endpointId);
  const failedByKey = sum(keys.map((id) => health.outcomes(id).failed));
  return {
    breakerOpen: readings.every(({ retryAfterMs }) => retryAfterMs > 0),
    ended: ended + failedByKey,
    failed: failed + failedByKey,
    firstOutputMs: readings[0]?.firstOutputMs,
    unitsPerSecond: readings[0]?.unitsPerSecond,
    lastFailure: latest([endpointId, ...keys].map((id) => health.lastFailure(id))),
  };
}

/** The last of several failures. */
export function latest(failures: readonly (LastFailure | undefined)[]): LastFailure | undefined {
  return failures
    .filter((failure) => failure !== undefined)
    .toSorted((one, other) => one.atMs - other.atMs)
    .at(-1);
}

/** All of them together. */
export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
