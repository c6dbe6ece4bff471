/**
 * Which addresses may be reached where the caller of this system, not its operator, chose the URL.
 *
 * - Public addresses may be reached; private and other special-purpose ones only where the operator lists them.
 * - Link-local and metadata addresses never, whatever is listed.
 * - What can't be read as an address is refused.
 *
 * Judging a URL by its text is not enough: names resolve to anything, and differently each time. The guard is asked
 * about the address that is about to be connected to (guarded-connector.ts).
 */
import { BlockList, isIP } from "node:net";
import type { Cidr } from "../runtime/config.ts";

/** Says whether an address may be connected to. */
export interface AddressGuard {
  /** `address` is an IPv4 or IPv6 literal without brackets; anything else is refused. */
  allows(address: string): boolean;
}

/** A connection that the guard refused. Its message names no address. */
export class AddressRefusedError extends Error {
  override readonly name = "AddressRefusedError";

  constructor() {
    super("The address is not one that may be connected to.");
  }
}

/** IPv4 ranges that are not public: IANA's special-purpose registry, and multicast. */
const specialIpv4 = [
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // shared behind carriers' NAT
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments
  "192.0.2.0/24", // documentation
  "192.31.196.0/24", // AS112
  "192.52.193.0/24", // multicast tunnels
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "192.175.48.0/24", // AS112
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
];

/**
 * The one block that IPv6 gives out public addresses from. Outside of it: unspecified, loopback, IPv4-mapped and
 * -compatible, NAT64 (64:ff9b), discard-only (100::), segment routing (5f00::), unique local (fc00), link-local (fe80),
 * site-local (fec0), multicast (ff00).
 */
const publicIpv6 = ["2000::/3"];

/** Ranges within that block which are not public. */
const specialIpv6 = [
  "2001::/23", // protocol assignments: Teredo, ORCHID, benchmarks …
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4
  "2620:4f:8000::/48", // AS112
  "3fff::/20", // documentation
];

/** Link-local addresses and those where clouds keep the credentials of the machine; also embedded in IPv6. */
const neverAllowed = [
  "169.254.0.0/16",
  "100.100.100.200/32", // Alibaba Cloud
  "168.63.129.16/32", // Azure
  "192.0.0.192/32", // Oracle Cloud
  "fe80::/10",
  "fd00:ec2::/32", // Amazon
  "fd20:ce::254/128", // Google Cloud
  "fd00:42::42/128", // Scaleway
  "fd00:c1::/32", // Oracle Cloud
  "::169.254.0.0/112", // IPv4-compatible
  "64:ff9b::169.254.0.0/112", // NAT64
  "64:ff9b::100.100.100.200/128",
  "64:ff9b::168.63.129.16/128",
  "64:ff9b::192.0.0.192/128",
  "2002:a9fe::/32", // 6to4
];

/** Makes a guard that lets through public addresses and `allowedCidrs`. */
export function createAddressGuard(options: { readonly allowedCidrs: readonly Cidr[] }): AddressGuard {
  // Lists apart for the two families: in one list, rules for IPv6 would also be tried on IPv4 as its mapped form.
  const special = { ipv4: blockListOf(specialIpv4), ipv6: blockListOf(specialIpv6) };
  const globalIpv6 = blockListOf(publicIpv6);
  const never = blockListOf(neverAllowed);
  const allowed = new BlockList();
  for (const { address, prefixLength, family } of options.allowedCidrs) {
    allowed.addSubnet(address, prefixLength, family);
  }
  const isPublic = (address: string, family: "ipv4" | "ipv6") =>
    !special[family].check(address, family) && (family === "ipv4" || globalIpv6.check(address, family));
  return {
    allows(address) {
      const version = isIP(address);
      if (version === 0) return false;
      const family = version === 4 ? "ipv4" : "ipv6";
      if (never.check(address, family)) return false;
      return isPublic(address, family) || allowed.check(address, family);
    },
  };
}

function blockListOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", length] = cidr.split("/");
    list.addSubnet(address, Number(length), isIP(address) === 4 ? "ipv4" : "ipv6");
  }
  return list;
}

/** Longest URL that is fetched, characters. */
const maxUrlLength = 8192;

/** A URL that may be asked for, as far as its text shows: http or https, without credentials; else undefined. */
export function parseFetchUrl(text: string, base?: URL): URL | undefined {
  if (text.length > maxUrlLength) return undefined;
  const url = URL.parse(text, base?.href);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
  return url.username === "" && url.password === "" ? url : undefined;
}
