import { createOutboundHttp } from "../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../lib/http/url-guard.ts";
import type { Log } from "../lib/runtime/log.ts";
import type { Metrics } from "../lib/telemetry/metrics.ts";
import type { Catalog } from "./catalog/catalog.ts";
import { builtInCatalogDirectory, loadCatalog } from "./catalog/load.ts";
import type {
  EnginePool,
  ImageAdapter,
  Provider,
  ProviderConnection,
  ProviderDependencies,
  ProviderManifest,
  SpeechAdapter,
} from "./contract.ts";
import { builtInProviders } from "./manifests.ts";
import type { ProviderHttp } from "./provider-http.ts";
import type { Credential } from "./routing/candidate.ts";
import { watchEngines } from "./routing/upstream-metrics.ts";
import { keyVariable, readConnections } from "./upstream/connections.ts";
import { createResultFetches, type ResultFetches } from "./upstream/fetch-result.ts";
import { onlyTo } from "./upstream/key-hosts.ts";

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
  /** How many keys the operator has; 0 where it is off, 1 where it needs none. */
  operatorKeys(slug: string): number;
  /** Whether an account may bring its own key to a provider; false for slugs that are not built in. */
  takesOwnKeys(slug: string): boolean;
  /** Makes the adapters of the providers that are on, ahead of the first request. */
  load(): Promise<void>;
  /**
   * A provider's speech adapter, made when first asked for, with one of the operator's keys, the first unless told, or an account's
   * own. Rejects when it speaks not, or is off and no own key is given.
   */
  speech(slug: string, credential?: Credential): Promise<ConnectedSpeech>;
  /** The same of a provider's image adapter. */
  image(slug: string, credential?: Credential): Promise<ConnectedImage>;
  /** The threads of engines in this process, once they have been used; for metrics. */
  enginePools(): readonly (EnginePool & { readonly provider: string })[];
  /** Ends what the adapters own. No call may be under way or follow. */
  close(): Promise<void>;
}

/** What the providers of a process are made from. */
export interface ProvidersOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly http: ProviderHttp;
  readonly results: Pick<ResultFetches, "of">;
  readonly log: Log;
  /** The built-in ones unless given. */
  readonly manifests?: readonly ProviderManifest[];
}

/** Reads which providers are on and how to reach them. Throws ConfigError when a variable is malformed. */
export function createProviders(options: ProvidersOptions): ProviderSet {
  const { environment, http, results, log, manifests = builtInProviders } = options;
  const connections = readConnections(manifests, environment);
  const slugs = manifests.map(({ slug }) => slug);
  const running = new RunningProviders(manifests, ({ slug, defaultBaseUrl, keyHosts }) => {
    const { baseUrl } = connections.get(slug) ?? { baseUrl: defaultBaseUrl };
    return { http: onlyTo(http, baseUrl, keyHosts), fetchResult: results.of(baseUrl) };
  });
  const operatorKeys = (slug: string) => connections.get(slug)?.apiKeys.length ?? 0;
  const isOn = (slug: string) => operatorKeys(slug) > 0;
  for (const slug of slugs.filter((each) => !isOn(each)))
    log.info({ provider: slug }, `provider is off: ${keyVariable(slug)} is not set`);
  const connect = (slug: string, credential: Credential = {}): ProviderConnection | undefined => {
    const { baseUrl, apiKeys = [] } = connections.get(slug) ?? {};
    const { operatorKey = 0, ownKey: apiKey = apiKeys[operatorKey] } = credential;
    return baseUrl === undefined || apiKey === undefined ? undefined : { baseUrl, apiKey };
  };
  return {
    slugs,
    isOn,
    operatorKeys,
    takesOwnKeys: (slug) => manifests.some((manifest) => manifest.slug === slug && manifest.needsKey),
    load: async () => void (await Promise.all(slugs.filter(isOn).map((slug) => running.find(slug)))),
    speech: async (slug, credential) => {
      const connection = connect(slug, credential);
      const adapter = connection === undefined ? undefined : (await running.find(slug))?.speech;
      if (connection === undefined || adapter === undefined) throw new Error(`provider ${slug} can't speak`);
      return { adapter, connection };
    },
    image: async (slug, credential) => {
      const connection = connect(slug, credential);
      const adapter = connection === undefined ? undefined : (await running.find(slug))?.image;
      if (connection === undefined || adapter === undefined) throw new Error(`provider ${slug} can't draw`);
      return { adapter, connection };
    },
    enginePools: () => running.enginePools(),
    close: () => running.close(),
  };
}

/** Providers that have been asked for, each made once. */
class RunningProviders {
  readonly #manifests: readonly ProviderManifest[];
  readonly #dependenciesOf: (manifest: ProviderManifest) => ProviderDependencies;
  readonly #making = new Map<string, Promise<Provider>>();
  readonly #made = new Map<string, Provider>();

  constructor(
    manifests: readonly ProviderManifest[],
    dependenciesOf: (manifest: ProviderManifest) => ProviderDependencies,
  ) {
    this.#manifests = manifests;
    this.#dependenciesOf = dependenciesOf;
  }

  find(slug: string): Promise<Provider> | undefined {
    const manifest = this.#manifests.find((candidate) => candidate.slug === slug);
    const making = this.#making.get(slug) ?? (manifest && this.#make(manifest));
    if (making !== undefined) this.#making.set(slug, making);
    return making;
  }

  enginePools() {
    return [...this.#made].flatMap(([provider, engine]) =>
      (engine.enginePools?.() ?? []).map((pool) => ({ provider, ...pool })),
    );
  }

  async close(): Promise<void> {
    const making = [...this.#making.values()];
    this.#making.clear();
    this.#made.clear();
    const ended = await Promise.allSettled(making.map(async (provider) => (await provider).close?.()));
    const failures = ended.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, "closing providers failed");
  }

  async #make(manifest: ProviderManifest): Promise<Provider> {
    const provider = await manifest.create(this.#dependenciesOf(manifest));
    this.#made.set(manifest.slug, provider);
    return provider;
  }
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
  const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));
  const providers = createProviders({ environment, http, results, log });
  onStop(async () => {
    await providers.close();
    await Promise.all([http.close(), results.close()]);
  });
  if (metrics !== undefined) watchEngines(metrics, providers);
  const directories = [builtInCatalogDirectory, ...(CATALOG_DIR === undefined ? [] : [CATALOG_DIR])];
  const catalog = await loadCatalog({ directories, providerSlugs: providers.slugs });
  await providers.load();
  return { providers, catalog };
}
