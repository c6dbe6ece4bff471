import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseUsd } from "../../lib/money/nano-usd.ts";
import { ConfigError } from "../../lib/runtime/config.ts";
import type { ReadSettings } from "../declared-endpoint.ts";
import {
  Catalog,
  type Endpoint,
  FetchedVoices,
  type ImageEndpoint,
  type Model,
  type Price,
  type SpeechCapabilities,
  type SpeechEndpoint,
  type Voice,
} from "./catalog.ts";
import { catalogFaults, type ReadCatalogFile } from "./check.ts";
import { withSettings } from "./endpoint-settings.ts";
import { toImage, toImagePrice } from "./image-load.ts";
import { parsePricesFile, pricesFileName, type SetPrices, withPrices } from "./prices-file.ts";
import {
  type CatalogFile,
  type EndpointEntry,
  endpointId,
  type ModelEntry,
  type PriceEntry,
  parseCatalogFile,
  type SpeechBillable,
  type SpeechEntry,
} from "./schema.ts";

/** The directory of the catalogue that this product brings along. */
export const builtInCatalogDirectory = fileURLToPath(new URL("../../catalog", import.meta.url));

/** Where a catalogue is read from. */
export interface CatalogSources {
  /** Later ones replace files of the same name in earlier ones and add others. */
  readonly directories: readonly string[];
  /** Providers that are built in; a file of any other must describe its own. */
  readonly providerSlugs: Iterable<string>;
  /** How settings are read, by the provider's slug; as they stand where it has none. */
  readonly settings?: ReadonlyMap<string, ReadSettings>;
}

/** The directories of a process: the built-in catalogue, and the operator's where there is one. */
export function catalogDirectories(catalogDir: string | undefined): readonly string[] {
  return catalogDir === undefined ? [builtInCatalogDirectory] : [builtInCatalogDirectory, catalogDir];
}

/** The files of a catalogue, each of which fits its schema and no more; prices are those that are in force. */
export interface CatalogFiles {
  readonly files: readonly ReadCatalogFile[];
  /** Where the prices of an endpoint stand if not with it. */
  readonly pricesAt: ReadonlyMap<EndpointEntry, string>;
}

/** Reads a catalogue: its files, which it then checks and makes the models of. Throws ConfigError as both do. */
export async function loadCatalog(sources: CatalogSources): Promise<Catalog> {
  const { directories, providerSlugs, settings = new Map() } = sources;
  return createCatalog(await readSettings(await readCatalogFiles(directories), settings), providerSlugs);
}

/**
 * Reads every `<slug>.yaml` of the directories. Throws ConfigError, one line that names the file and the path in it, when
 * a directory can't be read or anything in a file is malformed or unknown.
 */
export async function readCatalogFiles(directories: readonly string[]): Promise<CatalogFiles> {
  const paths = new Map<string, string>();
  for (const directory of directories) {
    for (const name of await yamlFiles(directory)) paths.set(name, join(directory, name));
  }
  const pricesPath = paths.get(pricesFileName);
  paths.delete(pricesFileName);
  const read = await readFiles([...paths.keys()].sort().map((name) => paths.get(name) ?? name));
  const { files, set } =
    pricesPath === undefined ? { files: read, set: [] } : await setPrices(read, pricesPath);
  return { files, pricesAt: new Map(set) };
}

/** Files with the settings that calls carry, read by the providers that have a way to. Throws ConfigError. */
export async function readSettings(
  { files, pricesAt }: CatalogFiles,
  readers: ReadonlyMap<string, ReadSettings>,
): Promise<CatalogFiles> {
  const read = await withSettings(files, readers);
  refuse(read.faults);
  const at = [...pricesAt].map(([entry, place]) => [read.entries.get(entry) ?? entry, place] as const);
  return { files: read.files, pricesAt: new Map(at) };
}

/** The models of files. Throws ConfigError, as reading does, when an entry contradicts itself or another. */
export function createCatalog({ files, pricesAt }: CatalogFiles, providerSlugs: Iterable<string>): Catalog {
  refuse(catalogFaults(files, new Set(providerSlugs), pricesAt));
  return toCatalog(files.map(({ content }) => content));
}

async function readFiles(paths: readonly string[]): Promise<readonly ReadCatalogFile[]> {
  const files: ReadCatalogFile[] = [];
  const faults: string[] = [];
  for (const path of paths) {
    const parsed = parseCatalogFile(await readText(path));
    if (parsed.file === undefined) faults.push(...parsed.faults.map((fault) => `${path}: ${fault}`));
    else files.push({ path, content: parsed.file });
  }
  refuse(faults);
  return files;
}

/** The files with the operator's prices in place of theirs, and where each of these stands. */
async function setPrices(files: readonly ReadCatalogFile[], path: string) {
  const parsed = parsePricesFile(await readText(path));
  const contents = files.map(({ content }) => content);
  const priced = withPrices(contents, parsed.file ?? { prices: [] });
  refuse([...(parsed.faults ?? []), ...priced.faults].map((fault) => `${path}: ${fault}`));
  return {
    files: files.map((file, index) => ({ ...file, content: priced.files[index] ?? file.content })),
    set: priced.set.map(({ endpoint, at }: SetPrices) => [endpoint, `${path}: ${at}`] as const),
  };
}

const faultsNamed = 5;

function refuse(faults: readonly string[]): void {
  if (faults.length === 0) return;
  const more = faults.length > faultsNamed ? `; and ${faults.length - faultsNamed} more` : "";
  throw new ConfigError(`catalogue: ${faults.slice(0, faultsNamed).join("; ")}${more}`);
}

async function yamlFiles(directory: string): Promise<readonly string[]> {
  let names: readonly string[];
  try {
    names = await readdir(directory);
  } catch (thrown) {
    throw new ConfigError(`catalogue: the directory ${directory} can't be read (${codeOf(thrown)})`);
  }
  const misnamed = names.find((name) => name.endsWith(".yml"));
  if (misnamed !== undefined) refuse([`${join(directory, misnamed)}: must be named .yaml`]);
  return names.filter((name) => name.endsWith(".yaml") && !name.startsWith("."));
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    throw new ConfigError(`catalogue: ${path} can't be read (${codeOf(thrown)})`);
  }
}

function codeOf(thrown: unknown): string {
  return (thrown as NodeJS.ErrnoException).code ?? String(thrown);
}

/** Endpoints of the file that declares their model come first: its author's own offer is preferred. */
function toCatalog(files: readonly CatalogFile[]): Catalog {
  const models = new Map(files.flatMap((file) => file.models ?? []).map((model) => [model.id, model]));
  const speech = new PreferredEndpoints<SpeechEndpoint>();
  const image = new PreferredEndpoints<ImageEndpoint>();
  const unpriced: Endpoint[] = [];
  for (const file of files) {
    const declared = new Set(file.models?.map(({ id }) => id));
    for (const entry of file.endpoints ?? []) {
      const model = models.get(entry.model);
      if (model === undefined) continue;
      const endpoint = toEndpoint(entry, model, file.provider);
      const isOwn = declared.has(model.id);
      const { prices } = entry;
      // Without a price nothing can be held for it, so it serves nobody.
      if (prices === undefined) {
        unpriced.push(endpoint);
        continue;
      }
      if (entry.speech !== undefined) {
        speech.add({ ...endpoint, speech: toSpeech(entry.speech), prices: prices.map(toPrice) }, isOwn);
      }
      if (entry.image !== undefined) {
        image.add({ ...endpoint, image: toImage(entry.image), prices: prices.map(toImagePrice) }, isOwn);
      }
    }
  }
  return new Catalog([...models.values()].map(toModel), speech.inOrder(), image.inOrder(), unpriced);
}

class PreferredEndpoints<E> {
  readonly #own: E[] = [];
  readonly #others: E[] = [];

  add(endpoint: E, isOwn: boolean): void {
    (isOwn ? this.#own : this.#others).push(endpoint);
  }

  inOrder(): readonly E[] {
    return [...this.#own, ...this.#others];
  }
}

function toModel({ created, ...model }: ModelEntry): Model {
  return { ...model, createdUnixS: Date.parse(`${created}T00:00:00Z`) / 1000 };
}

function toEndpoint(entry: EndpointEntry, model: ModelEntry, provider: CatalogFile["provider"]): Endpoint {
  return {
    id: endpointId(provider.slug, entry),
    model: model.id,
    permaslug: model.permaslug,
    providerSlug: provider.slug,
    providerName: provider.name,
    upstreamModel: entry.upstream_model,
    passthrough: entry.passthrough ?? [],
    settings: entry.settings ?? {},
    cancel: entry.cancel,
    billedBy: entry.billed_by,
  };
}

function toPrice({ billable, usd_per_million, most_per_input_character: most }: PriceEntry): Price {
  return {
    // The check has let no other pass.
    billable: billable as SpeechBillable,
    nanoUsdPerMillion: parseUsd(usd_per_million),
    mostPerInputCharacter:
      most === undefined
        ? undefined
        : BigInt(Math.ceil(billable === "output_audio_second" ? most * 1000 : most)),
  };
}

function toVoice(entry: Exclude<SpeechEntry["voices"], "fetched" | undefined>[number]): Voice {
  if (typeof entry === "string") return { id: entry, name: "", language: "" };
  const { id, name = "", language = "", gender, preview_url: previewUrl } = entry;
  return {
    id,
    name,
    language,
    ...(gender === undefined ? {} : { gender }),
    ...(previewUrl === undefined ? {} : { previewUrl }),
  };
}

function toSpeech(entry: SpeechEntry): SpeechCapabilities {
  const fetched = entry.voices === "fetched" ? new FetchedVoices() : undefined;
  const voices = (entry.voices === "fetched" ? [] : (entry.voices ?? [])).map(toVoice);
  return {
    ...(fetched !== undefined && { fetchedVoices: fetched }),
    ...(entry.voice_optional === true && { voiceOptional: true }),
    get voices() {
      return fetched?.current ?? voices;
    },
    formats: entry.formats,
    sampleRateHz: entry.sample_rate_hz,
    channels: entry.channels,
    voiceAliases: new Map(Object.entries(entry.voice_aliases ?? {})),
    ownVoices: entry.own_voices ?? false,
    defaultVoice: entry.default_voice,
    maxInputCharacters: entry.max_input_characters,
    speed: entry.speed,
    instructions: entry.instructions ?? false,
  };
}
