import { ConfigError, type ConfigSpec, httpUrlVar, readConfig, textVar } from "../../lib/runtime/config.ts";
import type { ProviderManifest } from "../contract.ts";

/** How the operator has set up a provider. */
export interface OperatorConnection {
  readonly baseUrl: string;
  /** Empty for providers that need none; undefined where the provider is off but for accounts' own keys. */
  readonly apiKey: string | undefined;
}

/**
 * The operator's connection to each provider, by slug, from `<PROVIDER>_API_KEY` and `<PROVIDER>_BASE_URL` (the slug in
 * capitals, dashes as underscores). A provider that needs a key and has none is off. Throws ConfigError, one line that
 * names the malformed variables; no value stands in it.
 */
export function readConnections(
  manifests: readonly ProviderManifest[],
  environment: NodeJS.ProcessEnv,
): ReadonlyMap<string, OperatorConnection> {
  const values = readVariables(manifests, environment);
  const connections = new Map<string, OperatorConnection>();
  for (const { slug, needsKey, defaultBaseUrl } of manifests) {
    const apiKey = values[keyVariable(slug)]?.trim() ?? "";
    // Anything else can't stand in a header.
    if (!/^[\x21-\x7e]*$/.test(apiKey)) {
      throw new ConfigError(`configuration: ${keyVariable(slug)} must be printable ASCII without blanks`);
    }
    const baseUrl = values[baseUrlVariable(slug)] ?? defaultBaseUrl;
    connections.set(slug, { baseUrl, apiKey: needsKey && apiKey === "" ? undefined : apiKey });
  }
  return connections;
}

/** The environment variable that holds the operator's key for a provider. */
export function keyVariable(slug: string): string {
  return `${prefix(slug)}_API_KEY`;
}

function baseUrlVariable(slug: string): string {
  return `${prefix(slug)}_BASE_URL`;
}

function prefix(slug: string): string {
  return slug.toUpperCase().replaceAll("-", "_");
}

/** Engines of this process have no address, and what needs no key reads none. */
function readVariables(
  manifests: readonly ProviderManifest[],
  environment: NodeJS.ProcessEnv,
): Readonly<Record<string, string | undefined>> {
  const keys = manifests
    .filter(({ needsKey }) => needsKey)
    .map(({ slug }) => [keyVariable(slug), textVar({ default: undefined })]);
  const addresses = manifests
    .filter(({ defaultBaseUrl }) => defaultBaseUrl !== "")
    .map(({ slug }) => [baseUrlVariable(slug), httpUrlVar({ default: undefined })]);
  const spec: ConfigSpec = Object.fromEntries([...keys, ...addresses]);
  return { ...(readConfig(spec, environment) as Record<string, string | undefined>) };
}
