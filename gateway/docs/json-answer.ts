import type { TSchema } from "typebox";
import type { RouteDocument } from "./route-document.ts";

/** What a document says of an answer that is one JSON value. */
export function jsonAnswer(
  description: string,
  name: string,
  schema: TSchema,
  example: unknown,
  status?: 201,
): RouteDocument["answer"] {
  return {
    ...(status === undefined ? {} : { status }),
    description,
    content: { "application/json": { schema: { name, schema }, example } },
  };
}
