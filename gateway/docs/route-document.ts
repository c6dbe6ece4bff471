import Type, { type TSchema } from "typebox";
import { cursorPage } from "../../lib/limits/cursor-page.ts";
import { nullableString } from "../schema/field-schemas.ts";
import type { ExampleModels } from "./example-models.ts";

/** A schema under the name that the document's components give it. */
export interface NamedSchema {
  readonly name: string;
  readonly schema: TSchema;
}

/** A parameter of the path or the query. */
export interface ParameterDocument {
  readonly name: string;
  readonly in: "path" | "query";
  readonly description: string;
  readonly schema: TSchema;
  /** Whether a parameter of the query must be given; one of the path always must. */
  readonly required?: true;
  /** How a list in the query is written: with commas. */
  readonly explode?: false;
  readonly example?: (models: ExampleModels) => string;
}

/** One way in which a whole answer may come. */
export interface ContentDocument {
  /** Bytes as they are without one. */
  readonly schema?: NamedSchema;
  readonly example?: unknown;
}

/** What the OpenAPI document says about a route beyond what the route itself says. */
export interface RouteDocument {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly ParameterDocument[];
  readonly body?: NamedSchema & {
    /** Bodies by a word for each. */
    readonly examples: (models: ExampleModels) => Readonly<Record<string, object>>;
    /** Whether a request may come without one. */
    readonly isOptional?: true;
    /** Where it may also come as a form (multipart/form-data). */
    readonly form?: NamedSchema;
  };
  readonly answer: {
    /** 200 without one. */
    readonly status?: 201;
    readonly description: string;
    /** Names of headers that the document describes, besides the one that every answer carries. */
    readonly headers?: readonly string[];
    readonly content: Readonly<Record<string, ContentDocument>>;
  };
  /** Statuses of errors besides those that follow from who may call it and from what it reads. */
  readonly errors?: readonly number[];
}

type DocumentEntry = Omit<RouteDocument, "id" | "tag"> & Partial<Pick<RouteDocument, "tag">>;

/** The documents of the routes of a tag by their ids. */
export function documentsOf<I extends string>(
  tag: string,
  entries: Readonly<Record<I, DocumentEntry>>,
): Readonly<Record<I, RouteDocument>> {
  const documents = Object.entries<DocumentEntry>(entries).map(([id, entry]) => [id, { id, tag, ...entry }]);
  return Object.fromEntries(documents) as Record<I, RouteDocument>;
}

/** What a document says of an answer that is one JSON value. */
export function jsonAnswer(
  description: string,
  name: string,
  schema: TSchema,
  example?: unknown,
  status?: 201,
): RouteDocument["answer"] {
  return {
    ...(status === undefined ? {} : { status }),
    description,
    content: { "application/json": { schema: { name, schema }, example } },
  };
}

/** What every DELETE answers. */
export const deletedBody = { deleted: true } as const;

const deletedSchema = Type.Object({ deleted: Type.Literal(true) });

/** What its document says of that. */
export const deletedAnswer = (description: string) =>
  jsonAnswer(description, "Deleted", deletedSchema, deletedBody);

/** The id of a resource in its path. */
export const idParameter: ParameterDocument = {
  name: "id",
  in: "path",
  description: "Its id.",
  schema: Type.String({ format: "uuid" }),
};

/** Which page of a list is wanted that goes on by cursor. */
export const cursorParameters: readonly ParameterDocument[] = [
  {
    name: "cursor",
    in: "query",
    description: "Where to go on: `next_cursor` of the page before.",
    schema: Type.String({ minLength: 1 }),
  },
  {
    name: "limit",
    in: "query",
    description: "How many to return at most.",
    schema: Type.Integer({ minimum: 1, ...cursorPage.limit }),
  },
];

/** A page of a list that goes on by cursor. */
export function cursorPageSchema<T extends TSchema>(item: T, description: string) {
  return Type.Object({
    data: Type.Array(item, { description }),
    next_cursor: nullableString({ description: "Leads to the next page; null on the last one." }),
  });
}

/** Which part of a list is wanted; `maxOffset` and `limit` as the service bounds them. */
export function pageParameters({
  maxOffset,
  limit,
  description = "How many to return.",
}: {
  readonly maxOffset: number;
  readonly limit: { readonly maximum: number; readonly default?: number };
  readonly description?: string;
}): readonly ParameterDocument[] {
  return [
    {
      name: "offset",
      in: "query",
      description: "How many to skip.",
      schema: Type.Integer({ minimum: 0, maximum: maxOffset, default: 0 }),
    },
    { name: "limit", in: "query", description, schema: Type.Integer({ minimum: 1, ...limit }) },
  ];
}
