import type { Endpoint } from "../catalog/catalog.ts";
import { ProviderError } from "../contract.ts";

/** An endpoint and the credential that it is to be tried with. */
export type Candidate<E> = E & {
  /** The account's own key at the provider, a secret; undefined: the operator's. */
  readonly ownKey?: string | undefined;
};

/**
 * Every way to try some endpoints: with the account's own keys (by provider), before all others, and with the operator's
 * where the provider is on.
 */
export function candidatesOf<E extends Pick<Endpoint, "providerSlug">>(
  endpoints: readonly E[],
  ownKeys: ReadonlyMap<string, string>,
  isOn: (providerSlug: string) => boolean,
): readonly Candidate<E>[] {
  const own = endpoints.flatMap((endpoint) => {
    const ownKey = ownKeys.get(endpoint.providerSlug);
    return ownKey === undefined ? [] : [{ ...endpoint, ownKey }];
  });
  return [...own, ...endpoints.filter(({ providerSlug }) => isOn(providerSlug))];
}

/** The providers of some endpoints to which an account may bring its own key, each once. */
export function ownKeySlugsOf(
  endpoints: readonly Pick<Endpoint, "providerSlug">[],
  takesOwnKeys: (providerSlug: string) => boolean,
): readonly string[] {
  const slugs = new Set(endpoints.map(({ providerSlug }) => providerSlug));
  return [...slugs].filter(takesOwnKeys);
}

/** What the health of a candidate is kept under: what own keys meet says nothing about the operator's. */
export function healthIdOf({ id, ownKey }: Candidate<Pick<Endpoint, "id">>): string {
  return ownKey === undefined ? id : `${id} by own keys`;
}

/**
 * Whether a failure speaks for the endpoint; that of one account's own key speaks for that key alone, and our engine
 * that is full now has room again as soon as some work is done.
 */
export function speaksForEndpoint({ ownKey }: Candidate<unknown>, error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError) || error.kind === "engine_full") return false;
  return ownKey === undefined || (error.kind !== "credentials" && error.kind !== "overloaded");
}
