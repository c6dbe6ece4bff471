import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { createAddressGuard } from "../../../lib/http/url-guard.ts";
import type { Cidr } from "../../../lib/runtime/config.ts";
import type { ReceiverHttp } from "../types/contract.ts";
import { createReceiverHttp } from "../types/receiver-http.ts";

interface ReceiversOptions {
  /** Private ranges that may be called all the same. */
  readonly allowedCidrs: readonly Cidr[];
  /** How names become addresses; the system's own way unless given. */
  readonly lookup?: LookupFunction;
}

/** The world of receivers, as far as it may be reached. */
export interface Receivers {
  readonly http: ReceiverHttp;
  /**
   * The first literal address that may not be called. Names are looked up only to call them: what they stand for may
   * change, and is not disclosed to whoever asks.
   */
  findForbidden(urls: readonly URL[]): URL | undefined;
  /** Closes all connections; deliveries under way fail. */
  close(): Promise<void>;
}

/** Opens the one way to receivers; nothing is connected yet. */
export function openReceivers({ allowedCidrs, lookup = systemLookup }: ReceiversOptions): Receivers {
  const guard = createAddressGuard({ allowedCidrs });
  const http = createReceiverHttp({ guard, lookup });
  return {
    http,
    findForbidden: (urls) =>
      urls.find(({ hostname }) => {
        const host = hostname.replace(/^\[|\]$/g, "");
        return isIP(host) !== 0 && !guard.allows(host);
      }),
    close: () => http.close(),
  };
}
