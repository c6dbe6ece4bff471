import { createOutboundHttp } from "../lib/http/outbound-fetch.ts";
import { openWebSocket } from "../lib/http/outbound-web-socket.ts";
import { createAddressGuard } from "../lib/http/url-guard.ts";
import type { Log } from "../lib/runtime/log.ts";
import type { Repeating } from "../lib/runtime/repeat.ts";
import type { Metrics } from "../lib/telemetry/metrics.ts";
import type { Catalog } from "./catalog/catalog.ts";
import { keepVoices } from "./catalog/fetch-voices.ts";
import { catalogDirectories, createCatalog, readCatalogFiles, readSettings } from "./catalog/load.ts";
import { pricesFileName } from "./catalog/prices-file.ts";
import { configuredProviders } from "./configured.ts";
import type {
  EnginePool,
  ImageAdapter,
  ListedVoice,
  Provider,
  ProviderConnection,
  ProviderDependencies,
  ProviderManifest,
  SpeechAdapter,
} from "./contract.ts";
import type { ReadSettings } from "./declared-endpoint.ts";
import { builtInProviders } from "./manifests.ts";
import type { OpenWebSocket, ProviderHttp } from "./provider-http.ts";
import type { Credential } from "./routing/candidate.ts";
import { watchEngines } from "./routing/upstream-metrics.ts";
import { readConnections, switchVariable } from "./upstream/network/connections.ts";
import { createResultFetches, type ResultFetches } from "./upstream/network/fetch-result.ts";
import { onlyTo, webSocketsOnlyTo } from "./upstream/network/key-hosts.ts";
import { type Networks, openNetworks } from "./upstream/network/networks.ts";

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
  /** All that there are, on or off. */
  readonly slugs: readonly string[];
  /** Whether the operator has switched it on; false for unknown slugs. */
  isOn(slug: string): boolean;
  /** How many keys the operator has; 0 where it is off, 1 where it needs none. */
  operatorKeys(slug: string): number;
  /** Where the operator has put it; undefined where it is at its own address, or has none. */
  redirectedTo(slug: string): string | undefined;
  /** Whether an account may bring its own key to a provider; false for unknown slugs. */
  takesOwnKeys(slug: string): boolean;
  /** The environment variable without which it is off; undefined where there is none. */
  switchVariable(slug: string): string | undefined;
  /** Makes the adapters of the providers that are on, ahead of the first request. */
  load(): Promise<void>;
  /**
   * A provider's speech adapter, made when first asked for, with one of the operator's keys, the first unless told, or an account's
   * own. Rejects when it speaks not, or is off and no own key is given.
   */
  speech(slug: string, credential?: Credential): Promise<ConnectedSpeech>;
  /** The same of a provider's image adapter. */
  image(slug: string, credential?: Credential): Promise<ConnectedImage>;
  /** The voices that a provider lists of a model now; undefined where it lists none or is off. Throws ProviderError. */
  voices(
    slug: string,
    upstreamModel: string,
    signal: AbortSignal,
  ): Promise<readonly ListedVoice[] | undefined>;
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
  /** In the place of `http`, for the providers that have one. */
  readonly networks?: Networks["own"];
  readonly webSocket?: OpenWebSocket;
  readonly log: Log;
  /** The built-in ones unless given. */
  readonly manifests?: readonly ProviderManifest[];
}

/** Reads which providers are on and how to reach them. Throws ConfigError when a variable is malformed. */
export function createProviders(options: ProvidersOptions): ProviderSet {
  const { environment, http, results, networks, webSocket = openWebSocket, log } = options;
  const { manifests = builtInProviders } = options;
  const connections = readConnections(manifests, environment);
  const slugs = manifests.map(({ slug }) => slug);
  const running = new RunningProviders(manifests, ({ slug, defaultBaseUrl, keyHosts }) => {
    const { baseUrl } = connections.get(slug) ?? { baseUrl: defaultBaseUrl };
    const { http: way, ca } = networks?.get(slug) ?? { http };
    const sockets = webSocketsOnlyTo(webSocket, baseUrl, keyHosts);
    return { http: onlyTo(way, baseUrl, keyHosts), fetchResult: results.of(baseUrl, ca), webSocket: sockets };
  });
  const operatorKeys = (slug: string) => connections.get(slug)?.apiKeys.length ?? 0;
  const isOn = (slug: string) => operatorKeys(slug) > 0;
  const switches = new Map(manifests.map((manifest) => [manifest.slug, switchVariable(manifest)]));
  logOff(log, switches, isOn);
  const connect = (slug: string, credential: Credential = {}): ProviderConnection | undefined => {
    const { baseUrl, apiKeys = [] } = connections.get(slug) ?? {};
    const { operatorKey = 0, ownKey: apiKey = apiKeys[operatorKey] } = credential;
    return baseUrl === undefined || apiKey === undefined ? undefined : { baseUrl, apiKey };
  };
  return {
    slugs,
    isOn,
    operatorKeys,
    redirectedTo: (slug) => connections.get(slug)?.redirectedTo,
    takesOwnKeys: (slug) => manifests.some((each) => each.slug === slug && each.needsKey),
    switchVariable: (slug) => switches.get(slug),
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
    voices: async (slug, upstreamModel, signal) => {
      const connection = connect(slug);
      if (connection === undefined) return undefined;
      return await (await running.find(slug))?.listVoices?.(upstreamModel, { connection, signal });
    },
    enginePools: () => running.enginePools(),
    close: () => running.close(),
  };
}

function logOff(log: Log, switches: ReadonlyMap<string, unknown>, isOn: ProviderSet["isOn"]): void {
  for (const [slug, variable] of switches) {
    if (!isOn(slug)) log.info({ provider: slug }, `provider is off: ${variable} is not set`);
  }
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

/** Reads the catalogue, the providers that it describes and which are on. Throws ConfigError. */
export async function openProviders(
  { log, metrics, onStop }: ProvidersHost,
  { environment, CATALOG_DIR }: ProvidersConfig,
): Promise<OpenProviders> {
  const http = createOutboundHttp();
  const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));
  const written = await readCatalogFiles(catalogDirectories(CATALOG_DIR));
  const files = await readSettings(written, settingsReaders(builtInProviders));
  const builtIn = builtInProviders.map(({ slug }) => slug);
  const catalog = createCatalog(files, builtIn);
  const manifests = [...builtInProviders, ...configuredProviders(files.files)];
  const networks = await openNetworks(manifests);
  const providers = createProviders({ environment, http, results, networks: networks.own, log, manifests });
  const voices: Repeating[] = [];
  onStop(async () => {
    await Promise.all(voices.map((list) => list.stop()));
    await providers.close();
    await Promise.all([http.close(), results.close(), networks.close()]);
  });
  if (metrics !== undefined) watchEngines(metrics, providers);
  logProviders(log, { providers, catalog });
  await providers.load();
  voices.push(...keepVoices(catalog, providers.voices, log));
  return { providers, catalog };
}

/** How the providers that check their endpoints' settings do so, by slug. */
export function settingsReaders(manifests: readonly ProviderManifest[]): ReadonlyMap<string, ReadSettings> {
  return new Map(
    manifests.flatMap(({ slug, readSettings: read }) => (read === undefined ? [] : [[slug, read]])),
  );
}

/** A line for each provider that is on, and one for each endpoint without a price. */
function logProviders(log: Log, { providers, catalog }: OpenProviders): void {
  const models = [...catalog.speechModels(), ...catalog.imageModels()];
  for (const slug of providers.slugs.filter((each) => providers.isOn(each))) {
    const offered = models.filter(({ endpoints }) => endpoints.some((each) => each.providerSlug === slug));
    const baseUrl = providers.redirectedTo(slug);
    // What stands before the host, and in a query, may be a secret.
    const address = baseUrl === undefined ? {} : { base_url: new URL(baseUrl).origin };
    log.info({ provider: slug, models: offered.length, ...address }, "provider is on");
  }
  for (const { id, model, providerSlug } of catalog.unpriced) {
    const fields = { provider: providerSlug, model, endpoint_id: id };
    const level = providers.isOn(providerSlug) ? "warn" : "info";
    log[level](fields, `endpoint has no price and serves nobody: set one in ${pricesFileName}`);
  }
}
