import Type, { type Static } from "typebox";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { type ParameterDocument, pageParameters } from "../docs/route-document.ts";
import type { Exchange } from "../http/exchange.ts";
import { maxInteger, readQuery } from "../http/query.ts";
import { nullableString, stringEnum } from "../schema/field-schemas.ts";
import { type ModelBody, modelSchema } from "./list.ts";

/** The answer of GET /models. */
export const modelListSchema = Type.Object({
  object: stringEnum(["list"]),
  data: Type.Array(modelSchema, { description: "Ordered by id." }),
  total_count: Type.Integer({ minimum: 0, description: "How many there are on all pages." }),
  links: Type.Object({
    next: nullableString({ format: "uri-reference", description: "The next page; null: this is the last." }),
  }),
});

const madeModalities = ["speech", "image"] as const;
/** Modalities that clients may ask for and that no model here gives. */
const otherModalities = ["text", "embeddings", "audio", "video", "rerank", "decisions", "transcription"];
const modalities: readonly string[] = [...madeModalities, ...otherModalities, "all"];

/** What models give. */
export type Modality = (typeof madeModalities)[number];

const names = (name: string, description: string): ParameterDocument => ({
  name,
  in: "query",
  description,
  schema: Type.Array(Type.String()),
  explode: false,
});

/** The parameter that says what models are to give. */
export const outputModalitiesParameter: ParameterDocument = {
  name: "output_modalities",
  in: "query",
  description: "Only models that give any of these; all without it, and with `all`.",
  schema: Type.Array(stringEnum(modalities), { minItems: 1 }),
  explode: false,
};

/** The parameters of GET /models. */
export const modelQueryParameters: readonly ParameterDocument[] = [
  outputModalitiesParameter,
  names("input_modalities", "Only models that take any of these, such as `image`."),
  names("supported_parameters", "Only models that take all of these."),
  names("model_authors", "Only models of any of these: what stands before the slash of the id."),
  names("providers", "Only models that any of these serve, by slug."),
  {
    name: "q",
    in: "query",
    description: "Only models whose id or name has this in it, in any case.",
    schema: Type.String({ minLength: 1 }),
  },
  ...pageParameters({
    maxOffset: maxInteger,
    limit: { maximum: maxInteger },
    description: "How many to return; all without it.",
  }),
];

/** Reads which models are asked for. Throws invalid_body. */
export function readModelQuery({ query }: Pick<Exchange, "query">) {
  const wanted = wantedModalities(query);
  const { offset, limit, text } = readQuery({ query }, (reader) => {
    const offset = reader.integer("offset") ?? 0;
    const limit = reader.integer("limit");
    if (limit === 0) reader.addIssue("limit", "must be at least 1");
    return { offset, limit, text: reader.text("q") };
  });
  const [inputs, parameters] = [listOf(query, "input_modalities"), listOf(query, "supported_parameters")];
  const [authors, providers] = [listOf(query, "model_authors"), listOf(query, "providers")];
  const any = (asked: readonly string[], found: readonly string[]) =>
    asked.length === 0 || asked.some((name) => found.includes(name));
  return {
    wanted,
    offset,
    limit,
    /** Whether a model is one of them, but for what it gives. */
    matches: (model: ModelBody) =>
      any(inputs, model.architecture.input_modalities) &&
      parameters.every((name) => model.supported_parameters.includes(name)) &&
      any(authors, model.id.split("/").slice(0, 1)) &&
      any(
        providers,
        model.endpoints.map((endpoint) => endpoint.provider_slug),
      ) &&
      (text === undefined || `${model.id}\n${model.name}`.toLowerCase().includes(text.toLowerCase())),
  };
}

function listOf(query: URLSearchParams, name: string): string[] {
  const words = query.getAll(name).flatMap((list) => list.split(","));
  return words.map((word) => word.trim()).filter((word) => word !== "");
}

/** What `output_modalities` lists, as far as models give it; all without it. Throws invalid_body for unknown words. */
export function wantedModalities(query: URLSearchParams): ReadonlySet<Modality> {
  const named = query.getAll("output_modalities").flatMap((list) => list.split(","));
  const words = named.map((word) => word.trim());
  if (words.some((word) => !modalities.includes(word))) {
    const message = `must list any of ${modalities.join(", ")}`;
    throw DomainError.invalid([{ path: "output_modalities", message }]);
  }
  const isAll = words.length === 0 || words.includes("all");
  return new Set(madeModalities.filter((modality) => isAll || words.includes(modality)));
}

/** The page of a list of models that a request for `target` asks for. */
export function toModelPage(
  models: readonly ModelBody[],
  { offset, limit = models.length }: { readonly offset: number; readonly limit: number | undefined },
  target: string,
): Static<typeof modelListSchema> {
  const end = offset + limit;
  return {
    object: "list",
    data: models.slice(offset, end),
    total_count: models.length,
    links: { next: end < models.length ? pageUrl(target, end) : null },
  };
}

function pageUrl(target: string, offset: number): string {
  const url = new URL(target, "http://localhost");
  url.searchParams.set("offset", String(offset));
  return `${url.pathname}${url.search}`;
}
