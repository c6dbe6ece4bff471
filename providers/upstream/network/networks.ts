import { readFile } from "node:fs/promises";
import { getCACertificates } from "node:tls";
import { createOutboundHttp, type OutboundHttp } from "../../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../../lib/http/url-guard.ts";
import { ConfigError } from "../../../lib/runtime/config.ts";
import type { ProviderManifest } from "../../contract.ts";
import type { ProviderNetwork } from "../../provider-http.ts";

/** The way out of one provider alone. */
interface OwnNetwork {
  readonly http: OutboundHttp;
  /** Whom to trust there, PEM, if not only the system's authorities. */
  readonly ca: readonly string[] | undefined;
}

/** The ways out of the providers whose manifests name a network. */
export interface Networks {
  /** By slug. */
  readonly own: ReadonlyMap<string, OwnNetwork>;
  /** Closes all connections; running requests fail. */
  close(): Promise<void>;
}

const publicOnly = createAddressGuard({ allowedCidrs: [] });
/** Link-local and metadata addresses stay closed. */
const privateToo = createAddressGuard({
  allowedCidrs: [
    { address: "0.0.0.0", prefixLength: 0, family: "ipv4" },
    { address: "::", prefixLength: 0, family: "ipv6" },
  ],
});

/**
 * Opens them: each connects to no private address unless its manifest allows that. Throws ConfigError for a file of
 * authorities that can't be used.
 */
export async function openNetworks(manifests: readonly ProviderManifest[]): Promise<Networks> {
  const own = new Map<string, OwnNetwork>();
  for (const { slug, network } of manifests) {
    if (network === undefined) continue;
    const ca = await readAuthorities(slug, network);
    const guard = network.privateAddress ? privateToo : publicOnly;
    own.set(slug, { http: createOutboundHttp({ guard, ca }), ca });
  }
  return {
    own,
    close: async () => void (await Promise.all([...own.values()].map(({ http }) => http.close()))),
  };
}

async function readAuthorities(
  slug: string,
  { caFile }: ProviderNetwork,
): Promise<readonly string[] | undefined> {
  if (caFile === undefined) return undefined;
  const pem = await readFile(caFile, "utf8").catch((thrown: NodeJS.ErrnoException) => {
    throw new ConfigError(`catalogue: ${slug}: ca_file ${caFile} can't be read (${thrown.code})`);
  });
  if (!pem.includes("-----BEGIN CERTIFICATE-----"))
    throw new ConfigError(`catalogue: ${slug}: ca_file ${caFile} holds no certificate`);
  return [...getCACertificates("default"), pem];
}
