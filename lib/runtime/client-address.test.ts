import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClientAddresses } from "./client-address.ts";
import { cidrListVar, readConfig } from "./config.ts";

const { PROXIES } = readConfig({ PROXIES: cidrListVar() }, { PROXIES: "10.0.0.0/8, fd00::/8" });
const behindProxies = new ClientAddresses(PROXIES);

function addressOf(
  peer: string | undefined,
  headers: Record<string, string> = {},
  addresses = behindProxies,
) {
  return addresses.of(peer, (name) => headers[name]);
}

const xff = (list: string) => ({ "x-forwarded-for": list });
const forwarded = (list: string) => ({ forwarded: list });

describe("the address of a client", () => {
  test.for([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:0001:2::", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
    ["", undefined],
    [undefined, undefined],
  ] as const)("is that of the connection: %s → %s", ([peer, address]) => {
    expect(addressOf(peer)).toBe(address);
    expect(addressOf(peer, xff("203.0.113.1"), new ClientAddresses())).toBe(address);
    expect(addressOf(peer, { ...xff("203.0.113.1"), ...forwarded("for=203.0.113.1") })).toBe(address);
  });

  test.for([
    [xff("192.0.2.1"), "192.0.2.1"],
    [xff("198.51.100.9, 192.0.2.1"), "192.0.2.1"],
    [xff("198.51.100.9, 192.0.2.1, 10.1.2.3,fd00::2"), "192.0.2.1"],
    [xff("192.0.2.1:1234"), "192.0.2.1"],
    [xff("[2001:db8::1]:1234"), "2001:db8:0:0::/64"],
    [forwarded("for=192.0.2.1"), "192.0.2.1"],
    [forwarded('for=198.51.100.9;proto=http, By=x;For="[2001:db8:0:1::2]:47"'), "2001:db8:0:1::/64"],
    [{ ...xff("192.0.2.1"), ...forwarded("for=192.0.2.1") }, "192.0.2.1"],
  ] as const)(
    "is the last that its trusted proxies name and that is none of them: %j → %s",
    ([headers, address]) => {
      expect(addressOf("10.0.0.1", headers)).toBe(address);
      expect(addressOf("::ffff:10.0.0.1", headers)).toBe(address);
    },
  );

  test.for([
    [{}],
    [xff("")],
    [xff("unknown")],
    [xff("192.0.2.1, what")],
    [xff("10.0.0.2, 10.0.0.3")],
    [forwarded("for=unknown")],
    [forwarded("proto=https")],
    [{ ...xff("192.0.2.1"), ...forwarded("for=192.0.2.2") }],
  ])("is the proxy's own where it names none that can be believed: %j", ([headers]) => {
    expect(addressOf("10.0.0.1", headers)).toBe("10.0.0.1");
  });

  test("can be chosen by no client whose proxy adds it to the header", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (claimed) => {
        expect(addressOf("10.0.0.1", xff(`${claimed}, 192.0.2.1`))).toBe("192.0.2.1");
      }),
    );
  });

  test("is one for each network of IPv6, however it is written, and another for every other", () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    const groups = fc.array(group, { minLength: 4, maxLength: 4 });
    const written = (values: readonly number[]) => values.map((value) => value.toString(16)).join(":");
    const padded = (values: readonly number[]) =>
      values.map((value) => value.toString(16).padStart(4, "0").toUpperCase()).join(":");
    fc.assert(
      fc.property(groups, groups, groups, (network, host, other) => {
        fc.pre(written(network) !== written(other) && written(network) !== "0:0:0:0");
        const address = addressOf(`${written(network)}:${written(host)}`, {}, new ClientAddresses());
        expect(addressOf(`${padded(network)}::`, {}, new ClientAddresses())).toBe(address);
        expect(addressOf(`${written(other)}:${written(host)}`, {}, new ClientAddresses())).not.toBe(address);
      }),
    );
  });
});
