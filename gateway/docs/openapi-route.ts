import Type from "typebox";
import { sendText } from "../http/answer.ts";
import type { Route } from "../http/route.ts";
import type { ExampleModels } from "./example-models.ts";
import { apiPath, createOpenApiDocument } from "./openapi.ts";
import type { RouteDocument } from "./route-document.ts";

const document: RouteDocument = {
  id: "getOpenApiDocument",
  tag: "About",
  summary: "This document",
  description: "Needs no key.",
  answer: {
    description: "The OpenAPI 3.1 document of this interface.",
    content: {
      "application/json": {
        schema: { name: "OpenApiDocument", schema: Type.Object({ openapi: Type.String() }) },
      },
    },
  },
};

/** GET /api/v1/openapi.json: the document of the given routes and of itself. */
export function openApiRoute(
  routes: readonly Route[],
  { creditsUrl }: { creditsUrl: string },
  exampleModels: () => Promise<ExampleModels>,
): Route {
  const route: Route = {
    method: "GET",
    path: `${apiPath}/openapi.json`,
    operation: "unrouted",
    access: "open",
    document,
    async handle(exchange) {
      const models = await exampleModels();
      if (models !== written?.models) {
        const document = createOpenApiDocument([...routes, route], { creditsUrl, models });
        written = { models, text: JSON.stringify(document) };
      }
      await sendText(exchange, 200, written.text, { "content-type": "application/json" });
    },
  };
  let written: { readonly models: ExampleModels; readonly text: string } | undefined;
  return route;
}
