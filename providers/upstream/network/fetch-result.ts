/**
 * Fetches what an upstream answered the address of.
 *
 * - None of our credentials goes along, whoever the address belongs to.
 * - At the provider's own origin, which the operator has named, any address may be reached, without a redirect; all others
 *   pass the guard at connect time, redirects included.
 */
import {
  createGuardedFetch,
  GuardedFetchError,
  type GuardedFetchErrorKind,
} from "../../../lib/http/guarded-fetch.ts";
import type { AddressGuard } from "../../../lib/http/url-guard.ts";
import { ProviderError, type ProviderErrorKind } from "../../contract.ts";
import type { FetchResult } from "../../provider-http.ts";

/** Makes fetches of results; a process needs one. */
export interface ResultFetches {
  /** Of a provider with this base URL; `ca` is whom to trust at its own origin, PEM, if not the system's. */
  of(baseUrl: string, ca?: readonly string[]): FetchResult;
  /** Closes all connections; running fetches fail. */
  close(): Promise<void>;
}

/** Longest time for one result; the attempt's own signal is mostly sooner. */
const timeoutMs = 120_000;

const kinds: Readonly<Record<GuardedFetchErrorKind, ProviderErrorKind>> = {
  url: "bad_answer",
  address: "bad_answer",
  too_large: "bad_answer",
  timeout: "timeout",
  aborted: "timeout",
  failed: "network",
};

/** Makes them; `guard` is asked about every address but a provider's own. */
export function createResultFetches(guard: AddressGuard): ResultFetches {
  const timeouts = { headersTimeoutMs: 30_000, idleTimeoutMs: 30_000 };
  const elsewhere = createGuardedFetch({ guard, ...timeouts });
  const ownFetch = (ca?: readonly string[]) =>
    createGuardedFetch({ guard: { allows: () => true }, maxRedirects: 0, ca, ...timeouts });
  const usual = ownFetch();
  const all = [elsewhere, usual];
  return {
    of: (baseUrl, ca) => {
      const own = ca === undefined ? usual : ownFetch(ca);
      if (ca !== undefined) all.push(own);
      return async (request) => {
        const isOwn = URL.parse(request.url)?.origin === URL.parse(baseUrl)?.origin;
        try {
          const { bytes } = await (isOwn ? own : elsewhere).fetch({ ...request, timeoutMs });
          return bytes;
        } catch (thrown) {
          if (request.signal.reason instanceof ProviderError) throw request.signal.reason;
          const kind = thrown instanceof GuardedFetchError ? kinds[thrown.kind] : "network";
          throw new ProviderError(kind, "What the upstream made can't be fetched from where it said.", {
            cause: thrown,
          });
        }
      };
    },
    close: async () => void (await Promise.all(all.map((each) => each.close()))),
  };
}
