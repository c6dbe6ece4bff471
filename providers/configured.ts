import type { ReadCatalogFile } from "./catalog/check.ts";
import { catalogDirectories, readCatalogFiles } from "./catalog/load.ts";
import type { ConnectionEntry } from "./catalog/provider-schema.ts";
import type { ProviderManifest } from "./contract.ts";
import { builtInProviders } from "./manifests.ts";
import { createCompatibleManifest } from "./openai-compatible/manifest.ts";

/** The providers that catalogue files describe themselves; those of a built-in one's name are left to the check. */
export function configuredProviders(files: readonly ReadCatalogFile[]): readonly ProviderManifest[] {
  const builtIn = new Set(builtInProviders.map(({ slug }) => slug));
  return files.flatMap(({ content: { provider } }) =>
    provider.connection === undefined || builtIn.has(provider.slug)
      ? []
      : toManifest(provider.slug, provider.connection),
  );
}

/**
 * The providers to which an account may bring its own key: those that need one, built in or described in the operator's
 * directory. Throws ConfigError where its files can't be read.
 */
export async function readOwnKeySlugs(catalogDir: string | undefined): Promise<readonly string[]> {
  const { files } = await readCatalogFiles(catalogDirectories(catalogDir));
  return [...builtInProviders, ...configuredProviders(files)]
    .filter(({ needsKey }) => needsKey)
    .map(({ slug }) => slug);
}

function toManifest(slug: string, connection: ConnectionEntry): ProviderManifest {
  const { base_url, auth = "bearer", key, headers, query, paths, edits, settings } = connection;
  return createCompatibleManifest({
    slug,
    baseUrl: base_url,
    network: { privateAddress: connection.private_address ?? false, caFile: connection.ca_file },
    auth,
    keyIsOptional: key === "optional",
    headers: headers ?? {},
    query: query ?? {},
    paths: paths ?? {},
    edits: edits ?? "multipart",
    settings: settings ?? {},
  });
}
