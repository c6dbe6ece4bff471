import { createOutboundHttp } from "../lib/http/outbound-fetch.ts";
import type { Log } from "../lib/runtime/log.ts";
import type { Metrics } from "../lib/telemetry/metrics.ts";
import type { Catalog } from "./catalog/catalog.ts";
import { builtInCatalogDirectory, loadCatalog } from "./catalog/load.ts";
import type {
  EnginePool,
  ImageAdapter,
  Provider,
  ProviderConnection,
  ProviderHttp,
  ProviderManifest,
  SpeechAdapter,
} from "./contract.ts";
import { local } from "./local/index.ts";
import { openai } from "./openai/index.ts";
import { watchEngines } from "./routing/upstream-metrics.ts";
import { keyVariable, readConnections } from "./upstream/connections.ts";

/** The providers that are built in. A new one is a folder, a catalogue file and a line here. */
export const builtInProviders: readonly ProviderManifest[] = [local, openai];

/** The providers to which an account may bring its own key: those that need one. */
export const ownKeySlugs = builtInProviders.filter(({ needsKey }) => needsKey).map(({ slug }) => slug);

/** A speech adapter and how it reaches its upstream. */
export interface ConnectedSpeech {
  readonly adapter: SpeechAdapter;
  readonly connection: ProviderConnection;
}

/** An image adapter and how it reaches its upstream. */
export interface ConnectedImage {
  readonly adapter: ImageAdapter;
  readonly connection: ProviderConnection;
}

/** The providers of a process. */
export interface ProviderSet {
  /** All that are built in, on or off: the slugs that a catalogue may name. */
  readonly slugs: readonly string[];
  /** Whether the operator has switched it on; false for slugs that are not built in. */
  isOn(slug: string): boolean;
  /** The providers to which an account may bring its own key. */
  readonly ownKeySlugs: readonly string[];
  /** Whether an account may bring its own key to a provider; false for slugs that are not built in. */
  takesOwnKeys(slug: string): boolean;
  /**
   * A provider's speech adapter, made when first asked for, with the operator's credential or an account's own. Throws
   * when it speaks not, or is off and no own key is given.
   */
  speech(slug: string, ownKey?: string): ConnectedSpeech;
  /** The same of a provider's image adapter. */
  image(slug: string, ownKey?: string): ConnectedImage;
  /** The threads of engines in this process, once they have been used; for metrics. */
  enginePools(): readonly (EnginePool & { readonly provider: string })[];
  /** Ends what the adapters own. No call may be under way or follow. */
  close(): Promise<void>;
}

/** What the providers of a process are made from. */
export interface ProvidersOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly http: ProviderHttp;
  readonly log: Log;
  /** The built-in ones unless given. */
  readonly manifests?: readonly ProviderManifest[];
}

/** Reads which providers are on and how to reach them. Throws ConfigError when a variable is malformed. */
export function createProviders(options: ProvidersOptions): ProviderSet {
  const { environment, http, log, manifests = builtInProviders } = options;
  const connections = readConnections(manifests, environment);
  const bySlug = new Map(manifests.map((manifest) => [manifest.slug, manifest]));
  const running = new Map<string, Provider>();
  for (const { slug } of manifests) {
    if (connections.get(slug)?.apiKey === undefined)
      log.info({ provider: slug }, `provider is off: ${keyVariable(slug)} is not set`);
  }
  const run = (slug: string): Provider | undefined => {
    const provider = running.get(slug) ?? bySlug.get(slug)?.create({ http });
    if (provider !== undefined) running.set(slug, provider);
    return provider;
  };
  const connect = (slug: string, ownKey: string | undefined): ProviderConnection | undefined => {
    const { baseUrl, apiKey = ownKey } = connections.get(slug) ?? {};
    if (baseUrl === undefined || apiKey === undefined) return undefined;
    return { baseUrl, apiKey: ownKey ?? apiKey };
  };
  return {
    slugs: [...bySlug.keys()],
    ownKeySlugs: manifests.filter(({ needsKey }) => needsKey).map(({ slug }) => slug),
    isOn: (slug) => connections.get(slug)?.apiKey !== undefined,
    takesOwnKeys: (slug) => bySlug.get(slug)?.needsKey === true,
    speech: (slug, ownKey) => {
      const connection = connect(slug, ownKey);
      const adapter = connection === undefined ? undefined : run(slug)?.speech;
      if (connection === undefined || adapter === undefined) throw new Error(`provider ${slug} can't speak`);
      return { adapter, connection };
    },
    image: (slug, ownKey) => {
      const connection = connect(slug, ownKey);
      const adapter = connection === undefined ? undefined : run(slug)?.image;
      if (connection === undefined || adapter === undefined) throw new Error(`provider ${slug} can't draw`);
      return { adapter, connection };
    },
    enginePools: () =>
      [...running].flatMap(([provider, engine]) =>
        (engine.enginePools?.() ?? []).map((pool) => ({ provider, ...pool })),
      ),
    close: async () => {
      const ended = await Promise.allSettled(
        [...running.values()].map(async (provider) => await provider.close?.()),
      );
      running.clear();
      const failures = ended.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
      if (failures.length > 0) throw new AggregateError(failures, "closing providers failed");
    },
  };
}

/** The process that providers are opened for. */
export interface ProvidersHost {
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Gets the end of what adapters own, then of their connections; no call may be under way then or follow. */
  onStop(end: () => Promise<void>): void;
}

/** What providers and their catalogue are opened with. */
export interface ProvidersConfig {
  readonly environment: NodeJS.ProcessEnv;
  /** A directory of catalogue files that replace built-in ones of the same name, or add to them. */
  readonly CATALOG_DIR: string | undefined;
}

/** The providers of a process and the models that they offer. */
export interface OpenProviders {
  readonly providers: ProviderSet;
  readonly catalog: Catalog;
}

/** Reads the catalogue and which providers are on. Throws ConfigError. */
export async function openProviders(
  { log, metrics, onStop }: ProvidersHost,
  { environment, CATALOG_DIR }: ProvidersConfig,
): Promise<OpenProviders> {
  const http = createOutboundHttp();
  const providers = createProviders({ environment, http, log });
  onStop(async () => {
    await providers.close();
    await http.close();
  });
  if (metrics !== undefined) watchEngines(metrics, providers);
  const directories = [builtInCatalogDirectory, ...(CATALOG_DIR === undefined ? [] : [CATALOG_DIR])];
  return { providers, catalog: await loadCatalog({ directories, providerSlugs: providers.slugs }) };
}
