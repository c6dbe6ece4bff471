import { Type } from "typebox";
import { Compile } from "typebox/compile";
import {
  type CatalogFile,
  type EndpointEntry,
  endpointId,
  PricesSchema,
  parseYaml,
  uuidText,
} from "./schema.ts";

/** The name of the file, beside the catalogue's own. */
export const pricesFileName = "prices.yaml";

const strict = { additionalProperties: false };
const PricesFileSchema = Type.Object(
  {
    prices: Type.Array(
      Type.Union([
        Type.Object({ endpoint: uuidText, prices: PricesSchema }, strict),
        Type.Object({ provider: Type.String(), model: Type.String(), prices: PricesSchema }, strict),
      ]),
    ),
  },
  strict,
);

/** Prices that an operator sets for endpoints of other files, each by its id or by its provider and model. */
export type PricesFile = Type.Static<typeof PricesFileSchema>;

const validator = Compile(PricesFileSchema);

/** Reads the text of a prices file; what is wrong with it is in `faults`, each `<path in the file>: <fault>`. */
export function parsePricesFile(yaml: string) {
  return parseYaml<PricesFile>(yaml, validator);
}

/** An endpoint whose prices come from a prices file, and the path of its entry there. */
export interface SetPrices {
  readonly endpoint: EndpointEntry;
  readonly at: string;
}

/**
 * The files with the prices of a prices file in place of their own: what was set, and the faults of entries that are no
 * endpoint's.
 */
export function withPrices(files: readonly CatalogFile[], { prices }: PricesFile) {
  const set: SetPrices[] = [];
  const found = new Set<number>();
  const priceOf = (slug: string, endpoint: EndpointEntry): EndpointEntry => {
    const index = prices.findLastIndex((entry) =>
      "endpoint" in entry
        ? entry.endpoint === endpointId(slug, endpoint)
        : entry.provider === slug && entry.model === endpoint.model,
    );
    const entry = prices[index];
    if (entry === undefined) return endpoint;
    found.add(index);
    const changed: EndpointEntry = { ...endpoint, prices: entry.prices };
    set.push({ endpoint: changed, at: `prices.${index}` });
    return changed;
  };
  const priced = files.map((file): CatalogFile => {
    const { provider, endpoints } = file;
    if (endpoints === undefined) return file;
    return { ...file, endpoints: endpoints.map((endpoint) => priceOf(provider.slug, endpoint)) };
  });
  const faults = [...prices.keys()]
    .filter((index) => !found.has(index))
    .map((index) => `prices.${index}: no file has such an endpoint, or another entry stands above it`);
  return { files: priced, set, faults };
}
