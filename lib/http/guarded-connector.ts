import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { type AddressGuard, AddressRefusedError } from "./url-guard.ts";

interface GuardedConnectorOptions {
  /** Longest time to connect, name lookup and TLS included. */
  readonly timeoutMs: number;
  /** How names become addresses; the system's own way unless given. */
  readonly lookup?: LookupFunction | undefined;
  /** Authorities to trust, PEM, in place of the system's. */
  readonly ca?: readonly string[] | undefined;
}

/**
 * Connects only to addresses that `guard` allows. A literal is checked before, because connecting to one looks nothing
 * up; a name's addresses are checked as they are looked up for this very connection. Fails with AddressRefusedError.
 */
export function createGuardedConnector(
  guard: AddressGuard,
  { timeoutMs, lookup = systemLookup, ca }: GuardedConnectorOptions,
): buildConnector.connector {
  const connect = buildConnector({
    allowH2: false,
    timeout: timeoutMs,
    lookup: createGuardedLookup(guard, lookup),
    ...(ca !== undefined && { ca: [...ca] }),
  });
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !guard.allows(host)) callback(new AddressRefusedError(), null);
    else connect(options, callback);
  };
}

/** Gives a name's allowed addresses only, and fails where none is left. */
function createGuardedLookup(guard: AddressGuard, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        callback(error, []);
        return;
      }
      const addresses = typeof found === "string" ? [{ address: found, family: isIP(found) }] : found;
      const allowed = addresses.filter(({ address }) => guard.allows(address));
      const [first] = allowed;
      if (first === undefined) callback(new AddressRefusedError(), []);
      else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
