import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { checkConnection, checkReach } from "./connection-check.ts";
import { checkImage, checkImagePrices, type Report } from "./image-check.ts";
import {
  type CatalogFile,
  type EndpointEntry,
  endpointId,
  type ModelEntry,
  type PriceEntry,
  type SpeechEntry,
  speechBillables,
} from "./schema.ts";

/** A catalogue file that fits its schema, and where it was read. */
export interface ReadCatalogFile {
  readonly path: string;
  readonly content: CatalogFile;
}

/** Billables that nobody can count before the upstream has answered. */
const countedAfterwards: ReadonlySet<string> = new Set([
  "input_text_token",
  "output_audio_token",
  "output_audio_second",
]);

/**
 * What is wrong between the files of a catalogue and within an entry beyond its shape, each
 * `<file>: <path in the file>: <fault>`; empty when the catalogue can be used.
 */
export function catalogFaults(
  files: readonly ReadCatalogFile[],
  providerSlugs: ReadonlySet<string>,
  /** Where the prices of an endpoint stand, `<file>: <path in the file>`, if not with it. */
  pricesAt: ReadonlyMap<EndpointEntry, string> = new Map(),
): readonly string[] {
  const models = new Map<string, ModelEntry>();
  const faults: string[] = [];
  for (const file of files) {
    const report = (path: string, fault: string) => faults.push(`${file.path}: ${path}: ${fault}`);
    checkProvider(file, providerSlugs, report);
    checkModels(file.content, models, report);
  }
  const endpointIds = new Set<string>();
  for (const { path, content } of files) {
    for (const [index, endpoint] of (content.endpoints ?? []).entries()) {
      const report = (at: string, fault: string) =>
        faults.push(`${path}: endpoints.${index}.${at}: ${fault}`);
      const id = endpointId(content.provider.slug, endpoint);
      if (endpointIds.has(id)) report("id", `${id} is another endpoint's too`);
      endpointIds.add(id);
      checkEndpoint(endpoint, models.get(endpoint.model), report);
      checkReach(endpoint, content.provider.connection, report);
      const elsewhere = pricesAt.get(endpoint);
      checkPrices(
        endpoint,
        elsewhere === undefined ? report : (at, fault) => faults.push(`${elsewhere}.${at}: ${fault}`),
      );
    }
  }
  return [...faults, ...modelsWithoutEndpoint(files)];
}

function checkProvider({ path, content }: ReadCatalogFile, known: ReadonlySet<string>, report: Report): void {
  const { slug, connection } = content.provider;
  if (basename(path) !== `${slug}.yaml`) report("provider.slug", `${slug} must be the name of the file`);
  if (connection !== undefined) {
    if (known.has(slug)) report("provider.connection", `${slug} is built in: has no place here`);
    checkConnection(connection, report);
  } else if (!known.has(slug)) {
    report(
      "provider.slug",
      `no provider ${slug} is built in, and the file describes none: connection is missing`,
    );
  }
}

function checkModels(content: CatalogFile, models: Map<string, ModelEntry>, report: Report): void {
  for (const [index, model] of (content.models ?? []).entries()) {
    const at = (field: string) => `models.${index}.${field}`;
    const known = models.get(model.id);
    // Several files may be ways to one model, each complete in itself.
    if (known !== undefined && (content.models?.includes(known) || !isDeepStrictEqual(known, model)))
      report(at("id"), `${model.id} is declared twice`);
    if (authorOf(model.permaslug) !== authorOf(model.id)) {
      report(at("permaslug"), `must begin with ${authorOf(model.id)}/ as the id does`);
    }
    const other = [...models.values()].find(({ permaslug }) => permaslug === model.permaslug);
    if (other !== undefined && other.id !== model.id) {
      report(at("permaslug"), `${model.permaslug} is the permaslug of ${other.id} too`);
    }
    if (!isDate(model.created)) report(at("created"), `${model.created} is no date`);
    models.set(model.id, model);
  }
}

function checkEndpoint(endpoint: EndpointEntry, model: ModelEntry | undefined, report: Report): void {
  if (model === undefined) report("model", `no file declares ${endpoint.model}`);
  else checkMedium(endpoint, model, report);
  if (endpoint.speech !== undefined) checkSpeech(endpoint.speech, report);
  if (endpoint.image !== undefined) checkImage(endpoint.image, report);
  for (const [index, key] of (endpoint.passthrough ?? []).entries()) {
    if (!mayPassThrough(key)) report(`passthrough.${index}`, `${key} may not be left to callers`);
  }
}

function checkPrices({ image, prices, billed_by }: EndpointEntry, report: Report): void {
  if (prices === undefined) {
    if (billed_by !== undefined) report("prices", "are missing: they bound what the vendor reports");
  } else if (image !== undefined) checkImagePrices(prices, image, report);
  else checkSpeechPrices(prices, report);
}

function checkMedium(endpoint: EndpointEntry, { id, medium }: ModelEntry, report: Report): void {
  const other = medium === "speech" ? "image" : "speech";
  if (endpoint[medium] === undefined) report(medium, `is missing: ${id} is a model of this medium`);
  if (endpoint[other] !== undefined) report(other, `has no place here: ${id} is a model of another medium`);
}

function checkSpeech({ voices, voice_aliases, default_voice }: SpeechEntry, report: Report): void {
  // What is fetched is not known yet.
  if (voices === "fetched") return;
  const ids = (voices ?? []).map((voice) => (typeof voice === "string" ? voice : voice.id));
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) report("speech.voices", `${twice} is listed twice`);
  if (default_voice !== undefined && voices !== undefined && !ids.includes(default_voice)) {
    report("speech.default_voice", `${default_voice} is not among the voices`);
  }
  for (const [alias, id] of Object.entries(voice_aliases ?? {})) {
    if (ids.includes(alias)) report("speech.voice_aliases", `${alias} is a voice itself`);
    if (!ids.includes(id)) report(`speech.voice_aliases.${alias}`, `${id} is not among the voices`);
  }
}

function checkSpeechPrices(prices: readonly PriceEntry[], report: Report): void {
  const seen = new Set<string>();
  for (const [index, price] of prices.entries()) {
    const { billable, most_per_input_character: most } = price;
    const at = `prices.${index}`;
    if (!speechBillables.some((known) => known === billable)) {
      report(`${at}.billable`, `${billable} has no meaning for speech`);
    }
    for (const field of ["unit", "variant", "most_tokens_each"] as const) {
      if (price[field] !== undefined) report(at, `${field} has no meaning for speech`);
    }
    if (seen.has(billable)) report(at, `${billable} has a price already`);
    seen.add(billable);
    if (countedAfterwards.has(billable) && most === undefined) {
      report(at, `most_per_input_character is missing: ${billable} is counted only afterwards`);
    }
    if (billable !== "output_audio_second" && !Number.isInteger(most ?? 1)) {
      report(at, "most_per_input_character is a whole number, but for seconds");
    }
    if (!countedAfterwards.has(billable) && most !== undefined) {
      report(at, `most_per_input_character has no meaning for ${billable}`);
    }
  }
}

function modelsWithoutEndpoint(files: readonly ReadCatalogFile[]): readonly string[] {
  const offered = new Set(files.flatMap(({ content }) => content.endpoints ?? []).map(({ model }) => model));
  return files.flatMap(({ path, content }) =>
    (content.models ?? [])
      .map(({ id }, index) => ({ id, fault: `${path}: models.${index}: ${id} has no endpoint` }))
      .filter(({ id }) => !offered.has(id))
      .map(({ fault }) => fault),
  );
}

function authorOf(slug: string): string {
  return slug.slice(0, slug.indexOf("/"));
}

function isDate(day: string): boolean {
  const instant = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(instant.getTime()) && instant.toISOString().startsWith(day);
}

/** Names, reduced to small letters and digits, that set what the gateway sets, prices, parses or authenticates by. */
const ownNames: ReadonlySet<string> = new Set([
  ...["model", "modelid", "modelname", "engine", "version"],
  ...["input", "inputs", "text", "transcript", "prompt", "ssml", "messages", "contents", "utterances"],
  ...["voice", "voiceid", "voicename", "referenceid", "speed", "speakingrate", "rate"],
  ...["format", "responseformat", "outputformat", "audioformat", "audioencoding", "encoding", "container"],
  ...["samplerate", "sampleratehertz", "sampleratehz", "channels", "mimetype", "codec"],
  ...["stream", "streaming", "streamformat", "partialimages", "withtimestamps", "syncmode"],
  ...["n", "numimages", "numoutputs", "samplecount", "maximages", "batchsize", "count"],
  ...["size", "imagesize", "width", "height", "resolution", "aspectratio", "quality", "user"],
  ...["auth", "authorization", "token", "accesstoken", "apikey", "key", "secret", "credentials", "headers"],
]);

/** Parts of names that ask the upstream to call an address. */
const addressName = /callback|webhook|notif|posturl|uploadurl/;

/**
 * Whether an endpoint's catalogue entry may let callers pass this parameter to the upstream. Spelling does not matter:
 * `responseFormat`, `response_format` and `Response-Format` are one name.
 */
export function mayPassThrough(key: string): boolean {
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, "");
  return name !== "" && !ownNames.has(name) && !addressName.test(name);
}
