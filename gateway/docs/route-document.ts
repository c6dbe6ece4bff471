import type { TSchema } from "typebox";
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
  /** The statuses of errors that this route really uses, where its operation may use more. */
  readonly errors?: readonly number[];
}
