import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Cidr } from "../runtime/config.ts";
import { createAddressGuard, parseFetchUrl } from "./url-guard.ts";

function cidr(text: string): Cidr {
  const [address = "", length] = text.split("/");
  return { address, prefixLength: Number(length), family: address.includes(":") ? "ipv6" : "ipv4" };
}

const guardOf = (...allowed: string[]) => createAddressGuard({ allowedCidrs: allowed.map(cidr) });
const everything = guardOf("0.0.0.0/0", "::/0");

describe("an address guard", () => {
  const guard = guardOf();

  test.for([
    ..."0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254".split(
      " ",
    ),
    ..."169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1".split(" "),
    ..."192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1".split(" "),
    ..."239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 100.100.100.200".split(" "),
    ...":: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::127.0.0.1 ::8.8.8.8".split(" "),
    ..."64:ff9b::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:10::1 2001:db8::1".split(" "),
    ..."2002:7f00:1::1 2002:808:808::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fdff::1".split(" "),
    ..."fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 FD00::1".split(" "),
    ...["", "localhost", "127.1", "2130706433", "0x7f.1", "[::1]", "1.2.3.4/32", "8.8.8.8 ", "08.8.8.8"],
  ])("refuses %s", (address) => {
    expect(guard.allows(address)).toBe(false);
  });

  test.for([
    ..."1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255".split(" "),
    ..."128.0.0.1 169.253.255.255 169.255.0.1 172.15.255.255 172.32.0.1 192.0.1.1 192.167.255.255".split(" "),
    ..."192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255 2000::1 2001:200::1 2001:4860:4860::8888".split(
      " ",
    ),
    ..."2003::1 2606:4700::1111 3ffe::1".split(" "),
  ])("lets through %s", (address) => {
    expect(guard.allows(address)).toBe(true);
  });

  test("lets through what the operator lists, and no more", () => {
    const listed = guardOf("10.1.0.0/16", "127.0.0.1/32", "fd12::/16");
    for (const address of ["10.1.2.3", "127.0.0.1", "::ffff:10.1.2.3", "fd12::7", "8.8.8.8"]) {
      expect(listed.allows(address), address).toBe(true);
    }
    for (const address of ["10.2.0.1", "127.0.0.2", "::1", "fd13::7", "192.168.0.1", "::10.1.2.3"]) {
      expect(listed.allows(address), address).toBe(false);
    }
  });

  test("lets through all private addresses where all are listed", () => {
    for (const address of [
      "10.0.0.1",
      "127.0.0.1",
      "::1",
      "fd12::1",
      "::ffff:10.0.0.1",
      "64:ff9b::8.8.8.8",
    ]) {
      expect(everything.allows(address), address).toBe(true);
    }
  });

  test.for([
    ..."169.254.0.1 169.254.169.254 169.254.170.2 fe80::1 fe80::1%1 febf::1 fd00:ec2::254 fd00:ec2::23".split(
      " ",
    ),
    ..."fd20:ce::254 100.100.100.200 168.63.129.16 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe".split(" "),
    ..."::169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b::100.100.100.200 2002:a9fe:a9fe::1".split(" "),
    ..."::ffff:100.100.100.200 0:0:0:0:0:ffff:a9fe:a9fe FE80:0:0:0:0:0:0:1".split(" "),
  ])("refuses %s though everything is listed", (address) => {
    expect(everything.allows(address)).toBe(false);
    expect(guardOf("169.254.0.0/16", "fe80::/10", "fd00::/8", "100.64.0.0/10").allows(address)).toBe(false);
  });

  test("judges an IPv4 address in IPv6 clothes no more kindly than the address itself", () => {
    const some = guardOf("10.0.0.0/8", "192.168.0.0/16");
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
        const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
        const disguises = [
          `::ffff:${address}`,
          `::ffff:${hex}`,
          `::${hex}`,
          `64:ff9b::${hex}`,
          `2002:${hex}::1`,
        ];
        for (const disguise of disguises) {
          if (some.allows(disguise)) expect(some.allows(address), disguise).toBe(true);
        }
      }),
    );
  });

  test("refuses link-local addresses however they are listed and written", () => {
    fc.assert(
      fc.property(fc.nat(0xffff), (host) => {
        const dotted = `169.254.${host >> 8}.${host & 0xff}`;
        const hex = `a9fe:${host.toString(16)}`;
        for (const address of [
          dotted,
          `::ffff:${dotted}`,
          `::ffff:${hex}`,
          `64:ff9b::${hex}`,
          `2002:${hex}::`,
        ]) {
          expect(everything.allows(address), address).toBe(false);
        }
      }),
    );
  });
});

describe("a URL to fetch", () => {
  test.for([
    ["http://example.com/a.png", "http://example.com/a.png"],
    ["HTTPS://example.com", "https://example.com/"],
    ["https://example.com:8443/a?b=c#d", "https://example.com:8443/a?b=c#d"],
    // Odd spellings of an address become the address, which the guard then sees.
    ["http://0x7f.1/", "http://127.0.0.1/"],
    ["http://2130706433/", "http://127.0.0.1/"],
    ["http://0177.0.0.1/", "http://127.0.0.1/"],
    ["http://127.1/", "http://127.0.0.1/"],
    ["http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"],
  ] as const)("may be %s", ([text, href]) => {
    expect(parseFetchUrl(text)?.href).toBe(href);
  });

  test.for([
    "",
    "example.com/a.png",
    "/a.png",
    "ftp://example.com/a.png",
    "file:///etc/passwd",
    "gopher://example.com/",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)",
    "http://",
    "http://user@example.com/",
    "http://user:password@example.com/",
    "http://:password@example.com/",
    "http://256.1.1.1/",
    "http://[fe80::1%25eth0]/",
    "http://example.com:99999/",
    `http://example.com/${"a".repeat(8192)}`,
  ])("may not be %s", (text) => {
    expect(parseFetchUrl(text)).toBeUndefined();
  });

  test("is read relative to another", () => {
    expect(parseFetchUrl("../b", new URL("https://example.com/a/c"))?.href).toBe("https://example.com/b");
    expect(parseFetchUrl("//user@host/b", new URL("https://example.com/a"))).toBeUndefined();
  });
});
