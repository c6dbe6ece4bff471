import Type from "typebox";
import { sendText } from "../http/answer.ts";
import type { Route } from "../http/route.ts";
import type { ExampleModels } from "./example-models.ts";
import { apiPath, createOpenApiDocument, type OpenApiDocument } from "./openapi.ts";
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

const place = {
  method: "GET",
  path: `${apiPath}/openapi.json`,
  operation: "unrouted",
  access: "open",
} as const;

/** The document of the given routes and of the one that serves it. */
export function describeRoutes(
  routes: readonly Route[],
  { creditsUrl }: { creditsUrl: string },
  models: ExampleModels,
): OpenApiDocument {
  const itself: Route = { ...place, document, handle: async () => {} };
  return createOpenApiDocument([...routes, itself], { creditsUrl, models });
}

/** GET /api/v1/openapi.json: the document of the given routes and of itself. */
export function openApiRoute(
  routes: readonly Route[],
  settings: { creditsUrl: string },
  exampleModels: () => Promise<ExampleModels>,
): Route {
  let written: { readonly models: ExampleModels; readonly text: string } | undefined;
  return {
    ...place,
    document,
    async handle(exchange) {
      const models = await exampleModels();
      if (models !== written?.models) {
        written = { models, text: JSON.stringify(describeRoutes(routes, settings, models)) };
      }
      await sendText(exchange, 200, written.text, { "content-type": "application/json" });
    },
  };
}
