import { BlockList, isIP } from "node:net";
import { createContextKey } from "@connectrpc/connect";
import type { Cidr } from "./config.ts";

/** The address of the other end of a call's connection; empty where there is none. */
export const peerAddressKey = createContextKey("", { description: "peer address" });

/** The value of a header by its name in lower case; undefined without it. */
export type ReadHeader = (name: string) => string | undefined;

/** Longest header of proxies that is read, characters. */
const maxHeaderLength = 4096;

/**
 * Finds out whose request it is by address, behind proxies that the operator trusts: the last address that they were
 * sent by which is none of theirs. What stands before it, the client may have made up. IPv6 counts by /64, as networks
 * are given out.
 */
export class ClientAddresses {
  readonly #trusted = new BlockList();

  constructor(trustedProxies: readonly Cidr[] = []) {
    for (const { address, prefixLength, family } of trustedProxies)
      this.#trusted.addSubnet(address, prefixLength, family);
  }

  /** The client's address, or its network, in a form of which there is one for each; undefined without a peer. */
  of(peer: string | undefined, header: ReadHeader): string | undefined {
    const known = plainAddress(peer ?? "");
    if (known === undefined) return undefined;
    return this.#isTrusted(known) ? networkOf(this.#forwarded(known, header)) : networkOf(known);
  }

  /** Where a proxy writes one header and a client the other, they differ: then the proxy's own address counts. */
  #forwarded(proxy: string, header: ReadHeader): string {
    const lists = [header("x-forwarded-for"), header("forwarded")];
    const [plain, standard] = lists.map((list) => (list ?? "").slice(-maxHeaderLength));
    const found = [
      plain ? this.#lastUntrusted(plain.split(",")) : undefined,
      standard ? this.#lastUntrusted(standard.split(",").map(forPartOf)) : undefined,
    ].filter((address) => address !== undefined);
    const [address = proxy, other = address] = found;
    return address === other ? address : proxy;
  }

  /** Undefined when what stands there is no address, or all of them are proxies. */
  #lastUntrusted(hops: readonly string[]): string | undefined {
    for (const hop of hops.toReversed()) {
      const address = plainAddress(hop.trim());
      if (address === undefined || !this.#isTrusted(address)) return address;
    }
    return undefined;
  }

  #isTrusted(address: string): boolean {
    return this.#trusted.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
  }
}

/** `for="[2001:db8::1]:4711";proto=https` → `[2001:db8::1]:4711` (RFC 7239). */
function forPartOf(element: string): string {
  return /(?:^|;)\s*for="?([^";]*)"?/i.exec(element.trim())?.[1] ?? "";
}

/** An address without brackets, port, zone or the mapping of IPv4 into IPv6; undefined when it is none. */
function plainAddress(text: string): string | undefined {
  const bare =
    /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  const address = bare.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");
  return isIP(address) === 0 ? undefined : address;
}

/** An IPv4 address as it is, an IPv6 address as its first 64 bits. */
function networkOf(address: string): string {
  if (isIP(address) === 4) return address;
  const groups = (part = "") => (part === "" ? [] : part.split(":"));
  const [head, tail] = address.split("::");
  const left = groups(head);
  // An IPv4 address at the end stands for two groups, none of them among the first four.
  const right = groups(tail).flatMap((group) => (group.includes(".") ? ["", ""] : [group]));
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  const all = [...left, ...Array.from({ length: zeros }, () => "0"), ...right];
  const first = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${first.join(":")}::/64`;
}
