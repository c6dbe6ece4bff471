import { readFile } from "node:fs/promises";
import { sendText } from "../http/answer.ts";
import type { Route } from "../http/route.ts";

/** All that the page asks for lies beside it, so that it also works behind a path of somebody's proxy. */
const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Media gateway: API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</html>
`;

const javascript = "text/javascript; charset=utf-8";
const assetMaxAge = "public, max-age=3600";

const securityPolicy = [
  "default-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join("; ");
const headers = {
  "content-security-policy": securityPolicy,
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** The pages at the root that show the OpenAPI document; nothing in them comes from or goes to any other host. */
export function docsRoutes(): readonly Route[] {
  const textRoute = (path: string, contentType: string, text: () => string | Promise<string>): Route => ({
    method: "GET",
    path,
    operation: "unrouted",
    access: "open",
    async handle(exchange) {
      const caching = path === "/docs" ? "no-cache" : assetMaxAge;
      const all = { ...headers, "content-type": contentType, "cache-control": caching };
      await sendText(exchange, 200, await text(), all);
    },
  });
  return [
    textRoute("/docs", "text/html; charset=utf-8", () => page),
    textRoute("/docs/start.js", javascript, () =>
      readFile(new URL("./docs-start.js", import.meta.url), "utf8"),
    ),
    textRoute("/docs/swagger-ui.css", "text/css; charset=utf-8", () =>
      readFile(new URL(import.meta.resolve("@fastify/swagger-ui/static/swagger-ui.css")), "utf8"),
    ),
    textRoute("/docs/swagger-ui-bundle.js", javascript, () =>
      readFile(new URL(import.meta.resolve("@fastify/swagger-ui/static/swagger-ui-bundle.js")), "utf8"),
    ),
  ];
}
