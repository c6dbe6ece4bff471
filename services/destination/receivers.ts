import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { withLimit } from "../../lib/events/with-limit.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import type { Cidr } from "../../lib/runtime/config.ts";
import type { ReceiverHttp } from "./types/contract.ts";
import { createReceiverHttp } from "./types/receiver-http.ts";

/** How receivers are reached. */
export interface ReceiversOptions {
  /** Private ranges that may be called all the same. */
  readonly allowedCidrs: readonly Cidr[];
  /** How names become addresses; the system's own way unless given. */
  readonly lookup?: LookupFunction;
}

/** The world of receivers, as far as it may be reached. */
export interface Receivers {
  readonly http: ReceiverHttp;
  /**
   * The first address that may not be called: a literal, or a name that stands for such an address now. A name that is
   * not known now, or not in time, may become known.
   */
  findForbidden(urls: readonly URL[], signal: AbortSignal): Promise<URL | undefined>;
  /** Closes all connections; deliveries under way fail. */
  close(): Promise<void>;
}

const lookupTimeoutMs = 2000;

/** Opens the one way to receivers; nothing is connected yet. */
export function openReceivers({ allowedCidrs, lookup = systemLookup }: ReceiversOptions): Receivers {
  const guard = createAddressGuard({ allowedCidrs });
  const http = createReceiverHttp({ guard, lookup });
  return {
    http,
    async findForbidden(urls, signal) {
      for (const url of urls) {
        const addresses = await addressesOf(url, lookup, signal);
        if (!addresses.every((address) => guard.allows(address))) return url;
      }
      return undefined;
    },
    close: () => http.close(),
  };
}

async function addressesOf(
  { hostname }: URL,
  lookup: LookupFunction,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0) return [host];
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  lookup(host, { all: true }, (error, found) => {
    if (error !== null) resolve([]);
    else resolve(typeof found === "string" ? [found] : found.map(({ address }) => address));
  });
  return withLimit(promise, { timeoutMs: lookupTimeoutMs, signal }).catch((thrown: unknown) => {
    signal.throwIfAborted();
    if (thrown instanceof DOMException && thrown.name === "TimeoutError") return [];
    throw thrown;
  });
}
