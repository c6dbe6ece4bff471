import type { Log } from "../lib/runtime/log.ts";
import { keyVariable, readConnections } from "./connections.ts";
import type {
  ImageAdapter,
  Provider,
  ProviderConnection,
  ProviderHttp,
  ProviderManifest,
  SpeechAdapter,
} from "./contract.ts";
import { local } from "./local/index.ts";
import { openai } from "./openai/index.ts";

/** The providers that are built in. A new one is a folder, a catalogue file and a line here. */
export const builtInProviders: readonly ProviderManifest[] = [local, openai];

/** A speech adapter and how it reaches its upstream with the operator's credential. */
export interface ConnectedSpeech {
  readonly adapter: SpeechAdapter;
  readonly connection: ProviderConnection;
}

/** An image adapter and how it reaches its upstream with the operator's credential. */
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
  /** The speech adapter of a provider that is on, made when first asked for. Throws when it is off or speaks not. */
  speech(slug: string): ConnectedSpeech;
  /** The image adapter of a provider that is on, made when first asked for. Throws when it is off or draws not. */
  image(slug: string): ConnectedImage;
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
    if (!connections.has(slug))
      log.info({ provider: slug }, `provider is off: ${keyVariable(slug)} is not set`);
  }
  const run = (slug: string): Provider | undefined => {
    const provider = running.get(slug) ?? bySlug.get(slug)?.create({ http });
    if (provider !== undefined) running.set(slug, provider);
    return provider;
  };
  return {
    slugs: [...bySlug.keys()],
    isOn: (slug) => connections.has(slug),
    speech: (slug) => {
      const connection = connections.get(slug);
      const adapter = connection === undefined ? undefined : run(slug)?.speech;
      if (connection === undefined || adapter === undefined) throw new Error(`provider ${slug} can't speak`);
      return { adapter, connection };
    },
    image: (slug) => {
      const connection = connections.get(slug);
      const adapter = connection === undefined ? undefined : run(slug)?.image;
      if (connection === undefined || adapter === undefined) throw new Error(`provider ${slug} can't draw`);
      return { adapter, connection };
    },
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
