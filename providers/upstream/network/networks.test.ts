import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConfigError } from "../../../lib/runtime/config.ts";
import { selfSignedCertificate } from "../../../test/support/self-signed-certificate.ts";
import { type StandIn, startStandIn } from "../../../test/upstreams/stand-in/stand-in-server.ts";
import type { ProviderManifest } from "../../contract.ts";
import type { ProviderNetwork } from "../../provider-http.ts";
import { createResultFetches } from "./fetch-result.ts";
import { openNetworks } from "./networks.ts";

const { signal } = new AbortController();
let upstream: StandIn;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "networks-"));
  upstream = await startStandIn((_, answer) => answer.send(200, {}, "here"));
});
afterAll(async () => {
  await upstream.close();
  await rm(folder, { recursive: true });
});

function manifestOf(slug: string, network?: ProviderNetwork): ProviderManifest {
  const manifest = { slug, defaultBaseUrl: "", needsKey: false, create: async () => ({}) };
  return network === undefined ? manifest : { ...manifest, network };
}

/** What a provider of such a network gets from a URL: a text, or how it failed. */
async function reach(network: ProviderNetwork, url: string): Promise<string> {
  const networks = await openNetworks([manifestOf("acme", network)]);
  try {
    const { http } = networks.own.get("acme") ?? {};
    const answer = await http?.request({ method: "GET", url, headers: {}, signal });
    return Buffer.concat(await Array.fromAsync(answer?.body ?? [])).toString();
  } catch (thrown) {
    const { kind, cause } = thrown as { kind: string; cause?: Error };
    return `${kind} ${cause?.name}`;
  } finally {
    await networks.close();
  }
}

describe("a provider that an operator describes", () => {
  test("is reached at a private address only where that is said, by name, too", async () => {
    const refused = "connect AddressRefusedError";
    for (const url of [upstream.baseUrl, upstream.baseUrl.replace("127.0.0.1", "localhost")]) {
      expect(await reach({ privateAddress: false }, url)).toBe(refused);
    }
    expect(upstream.requests).toHaveLength(0);
    expect(await reach({ privateAddress: true }, upstream.baseUrl)).toBe("here");
  });

  test.for(["http://169.254.169.254/latest", "http://[fe80::1]/", "http://100.100.100.200/"])(
    "is never reached at %s",
    async (url) => {
      expect(await reach({ privateAddress: true }, url)).toBe("connect AddressRefusedError");
    },
  );

  test("has a network of its own, others have none", async () => {
    const networks = await openNetworks([manifestOf("acme", { privateAddress: true }), manifestOf("beta")]);
    expect([...networks.own.keys()]).toEqual(["acme"]);
    await networks.close();
  });

  test("may be certified by an authority of its own, which is trusted for nobody else", async (context) => {
    const certificate = selfSignedCertificate() ?? context.skip("openssl");
    const server = createServer(certificate, (_, response) =>
      response.setHeader("content-length", "4").end("here"),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const caFile = join(folder, "ca.pem");
    await writeFile(caFile, certificate.cert);
    const results = createResultFetches({ allows: () => false });
    try {
      expect(await reach({ privateAddress: true, caFile }, url)).toBe("here");
      expect(await reach({ privateAddress: true }, url)).toMatch(/^connect/);
      // What it answers the address of is fetched with the same trust.
      const networks = await openNetworks([manifestOf("acme", { privateAddress: true, caFile })]);
      const { ca } = networks.own.get("acme") ?? {};
      const fetched = await results.of(url, ca)({ url: `${url}/x`, signal, maxBytes: 100 });
      expect(Buffer.from(fetched).toString()).toBe("here");
      await expect(results.of(url)({ url: `${url}/x`, signal, maxBytes: 100 })).rejects.toThrow();
      // The system's authorities stay trusted.
      expect(ca?.length).toBeGreaterThan(10);
      await networks.close();
    } finally {
      await results.close();
      server.closeAllConnections();
      server.close();
    }
  });

  test("ends the start where its file of authorities can't be used", async () => {
    const notes = join(folder, "notes.txt");
    await writeFile(notes, "none");
    for (const [caFile, words] of [
      [join(folder, "missing.pem"), /^catalogue: acme: ca_file .*missing\.pem can't be read \(ENOENT\)$/],
      [notes, /^catalogue: acme: ca_file .*notes\.txt holds no certificate$/],
    ] as const) {
      const opened = openNetworks([manifestOf("acme", { privateAddress: true, caFile })]);
      await expect(opened).rejects.toThrow(words);
      await expect(opened).rejects.toBeInstanceOf(ConfigError);
    }
  });
});
