import type { Stranger, Strangers } from "../identity/stranger.ts";
import { ClientAddresses, type ReadHeader } from "../runtime/client-address.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { type ConfigOf, cidrListVar, intVar } from "../runtime/config.ts";
import { refusalError, windowUsedUp } from "./limiter.ts";
import { RateWindows } from "./rate-windows.ts";

/** How many requests without a good key an address may make, and which proxies name addresses. */
export const addressLimitSpec = {
  ANONYMOUS_LIMIT_PER_MINUTE: intVar(1, 1_000_000)({ default: 600 }),
  TRUSTED_PROXIES: cidrListVar({ default: [] }),
} as const;

/** Limits the requests that come without a good key, by the client's address, within this process. */
export class AddressLimiter implements Strangers {
  readonly #perMinute: number;
  readonly #addresses: ClientAddresses;
  readonly #windows: RateWindows;
  #refused = 0;

  constructor(config: ConfigOf<typeof addressLimitSpec>, clock: Clock = systemClock) {
    this.#perMinute = config.ANONYMOUS_LIMIT_PER_MINUTE;
    this.#addresses = new ClientAddresses(config.TRUSTED_PROXIES);
    this.#windows = new RateWindows({ clock });
  }

  get refused(): number {
    return this.#refused;
  }

  at(peer: string | undefined, header: ReadHeader): Stranger | undefined {
    if (!peer) return undefined;
    // Few requests need it: most come with a key that is known.
    const address = () => this.#addresses.of(peer, header) ?? peer;
    return {
      count: () => this.#count(address()),
      forgive: () => this.#windows.takeBack(address()),
    };
  }

  #count(address: string): void {
    const waitMs = this.#windows.waitMs(address, this.#perMinute);
    if (waitMs === 0) {
      this.#windows.add(address);
      return;
    }
    this.#refused += 1;
    throw refusalError(windowUsedUp(waitMs));
  }
}
