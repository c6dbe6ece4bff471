import Type from "typebox";
import type { ParameterDocument } from "./route-document.ts";

/** The id of a resource in its path. */
export const idParameter: ParameterDocument = {
  name: "id",
  in: "path",
  description: "Its id.",
  schema: Type.String({ format: "uuid" }),
};

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
