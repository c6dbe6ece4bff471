/**
 * Owns what a process remembers of accounts' own provider keys.
 * 1. A key, or that there is none, is used for at most 5 s from when it was asked for.
 * 2. One look-up at a time for each account and provider, whoever waits for it; it ends with its own deadline.
 * 3. Without an answer a request fails: serving it by the operator's key would charge what its account did not expect.
 */

import type { Client } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import type { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";

/** The account's own keys at some providers, by slug; those without one are not in it. */
export type ResolveOwnKeys = (
  accountId: string,
  providerSlugs: readonly string[],
) => Promise<ReadonlyMap<string, string>>;

/** What own keys are asked with. */
export interface OwnKeysOptions {
  readonly account: Pick<Client<typeof AccountInternalService>, "resolveProviderKey">;
  readonly clock?: Clock;
}

const ttlMs = 5000;
const lookUpTimeoutMs = 3000;
const maxEntries = 10_000;

/** Asks account and remembers. Throws DomainError when account does not answer. */
export function createOwnKeys({ account, clock = systemClock }: OwnKeysOptions): ResolveOwnKeys {
  const known = new LRUCache<string, { secret: string; untilMs: number }>({ max: maxEntries });
  const inFlight = new Map<string, Promise<string>>();
  const lookUp = async (name: string, accountId: string, providerSlug: string): Promise<string> => {
    const untilMs = clock.monotonicMs() + ttlMs; // 1.
    try {
      const answer = await account.resolveProviderKey(
        { accountId, providerSlug },
        { timeoutMs: lookUpTimeoutMs },
      );
      known.set(name, { secret: answer.secret, untilMs });
      return answer.secret;
    } finally {
      inFlight.delete(name);
    }
  };
  const secretOf = (accountId: string, providerSlug: string): string | Promise<string> => {
    const name = `${accountId} ${providerSlug}`;
    const entry = known.get(name);
    if (entry !== undefined && clock.monotonicMs() < entry.untilMs) return entry.secret;
    let looking = inFlight.get(name);
    if (looking === undefined) {
      looking = lookUp(name, accountId, providerSlug);
      inFlight.set(name, looking); // 2.
    }
    return looking;
  };
  return async (accountId, providerSlugs) => {
    const keys = new Map<string, string>();
    const secrets = await Promise.all(providerSlugs.map((slug) => secretOf(accountId, slug))); // 3.
    for (const [index, slug] of providerSlugs.entries()) {
      const secret = secrets[index];
      if (secret !== undefined && secret !== "") keys.set(slug, secret);
    }
    return keys;
  };
}
