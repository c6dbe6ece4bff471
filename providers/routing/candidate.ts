import type { Endpoint } from "../catalog/catalog.ts";
import { ProviderError } from "../contract.ts";

/** What an endpoint is to be tried with. */
export interface Credential {
  /** The account's own key at the provider, a secret; undefined: the operator's. */
  readonly ownKey?: string | undefined;
  /** Which of the operator's keys, from 0; undefined where there is one, and with an own key. */
  readonly operatorKey?: number | undefined;
}

/** An endpoint and the credential that it is to be tried with. */
export type Candidate<E> = E & Credential;

/**
 * Every way to try some endpoints: with the account's own keys (by provider), before all others, and with each of the
 * operator's, of which there are none where the provider is off.
 */
export function candidatesOf<E extends Pick<Endpoint, "providerSlug">>(
  endpoints: readonly E[],
  ownKeys: ReadonlyMap<string, string>,
  operatorKeys: (providerSlug: string) => number,
): readonly Candidate<E>[] {
  const own = endpoints.flatMap((endpoint) => {
    const ownKey = ownKeys.get(endpoint.providerSlug);
    return ownKey === undefined ? [] : [{ ...endpoint, ownKey }];
  });
  const operators = endpoints.flatMap((endpoint): readonly Candidate<E>[] => {
    const count = operatorKeys(endpoint.providerSlug);
    if (count === 1) return [endpoint];
    return Array.from({ length: count }, (_, operatorKey) => ({ ...endpoint, operatorKey }));
  });
  return [...own, ...operators];
}

/** The providers of some endpoints to which an account may bring its own key, each once. */
export function ownKeySlugsOf(
  endpoints: readonly Pick<Endpoint, "providerSlug">[],
  takesOwnKeys: (providerSlug: string) => boolean,
): readonly string[] {
  const slugs = new Set(endpoints.map(({ providerSlug }) => providerSlug));
  return [...slugs].filter(takesOwnKeys);
}

/**
 * What the health of a candidate is kept under, of its endpoint and of its key where that has one of its own: what own keys
 * meet says nothing about the operator's.
 */
export function healthIdsOf({
  id,
  ownKey,
  operatorKey,
}: Candidate<Pick<Endpoint, "id">>): readonly [endpointId: string, keyId?: string] {
  if (ownKey !== undefined) return [`${id} by own keys`];
  return operatorKey === undefined ? [id] : [id, `${id} by key ${operatorKey}`];
}

/** Whether the same endpoint may do better with another key: this one is refused, or over its limit. */
export function speaksForKey({ kind, status }: ProviderError): boolean {
  return kind === "credentials" || (kind === "overloaded" && status === 429);
}

/**
 * Whether a failure speaks for the endpoint; that of one account's own key speaks for that key alone, and our engine
 * that is full now has room again as soon as some work is done.
 */
export function speaksForEndpoint({ ownKey }: Candidate<unknown>, error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError) || error.kind === "engine_full") return false;
  return ownKey === undefined || (error.kind !== "credentials" && error.kind !== "overloaded");
}
