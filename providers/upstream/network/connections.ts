import {
  ConfigError,
  type ConfigSpec,
  httpUrlVar,
  listVar,
  readConfig,
} from "../../../lib/runtime/config.ts";
import type { ProviderManifest } from "../../contract.ts";

/** How the operator has set up a provider. */
export interface OperatorConnection {
  readonly baseUrl: string;
  /** The same where it is not the provider's own. */
  readonly redirectedTo?: string | undefined;
  /**
   * Best first, each once; none where the provider is off but for accounts' own keys. A provider that needs none has an empty
   * one.
   */
  readonly apiKeys: readonly string[];
}

/**
 * The operator's connection to each provider, by slug, from `<PROVIDER>_API_KEY` and `<PROVIDER>_BASE_URL` (the slug in
 * capitals, dashes as underscores); several keys are separated by commas. A provider that lacks the key or the address
 * that it needs is off. Throws ConfigError, one line that names the malformed variables; no value stands in it.
 */
export function readConnections(
  manifests: readonly ProviderManifest[],
  environment: NodeJS.ProcessEnv,
): ReadonlyMap<string, OperatorConnection> {
  const values = readVariables(manifests, environment);
  const connections = new Map<string, OperatorConnection>();
  for (const { slug, needsKey, needsAddress, defaultBaseUrl } of manifests) {
    const apiKeys = new Set(values.keys[keyVariable(slug)]);
    if (!needsKey && apiKeys.size === 0) apiKeys.add("");
    // Anything else can't stand in a header.
    if (![...apiKeys].every((key) => /^[\x21-\x7e]*$/.test(key))) {
      throw new ConfigError(`configuration: ${keyVariable(slug)} must be printable ASCII without blanks`);
    }
    const baseUrl = values.addresses[baseUrlVariable(slug)] ?? defaultBaseUrl;
    const redirectedTo = baseUrl === defaultBaseUrl ? undefined : baseUrl;
    const isOff = needsAddress === true && baseUrl === "";
    connections.set(slug, { baseUrl, redirectedTo, apiKeys: isOff ? [] : [...apiKeys] });
  }
  return connections;
}

/** The environment variable that holds the operator's keys for a provider. */
export function keyVariable(slug: string): string {
  return `${prefix(slug)}_API_KEY`;
}

/** The environment variable without which a provider is off; undefined where there is none. */
export function switchVariable({ slug, needsAddress, needsKey }: ProviderManifest): string | undefined {
  if (needsAddress === true) return baseUrlVariable(slug);
  return needsKey ? keyVariable(slug) : undefined;
}

function baseUrlVariable(slug: string): string {
  return `${prefix(slug)}_BASE_URL`;
}

function prefix(slug: string): string {
  return slug.toUpperCase().replaceAll("-", "_");
}

/** Engines of this process have no address, and what needs no key reads none. */
function readVariables(manifests: readonly ProviderManifest[], environment: NodeJS.ProcessEnv) {
  const keys = manifests
    .filter(({ needsKey, takesKey }) => needsKey || takesKey)
    .map(({ slug }) => [keyVariable(slug), listVar({ default: [] })]);
  const addresses = manifests
    .filter(({ defaultBaseUrl, needsAddress }) => defaultBaseUrl !== "" || needsAddress)
    .map(({ slug }) => [baseUrlVariable(slug), httpUrlVar({ default: undefined })]);
  const spec: ConfigSpec = Object.fromEntries([...keys, ...addresses]);
  const values: Readonly<Record<string, unknown>> = readConfig(spec, environment);
  return {
    keys: values as Readonly<Record<string, readonly string[] | undefined>>,
    addresses: values as Readonly<Record<string, string | undefined>>,
  };
}
