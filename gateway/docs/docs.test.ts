import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GatewayServer, startGatewayServer } from "../../test/support/services/gateway-server.ts";

let gateway: GatewayServer;

beforeAll(async () => {
  gateway = await startGatewayServer();
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

/** All that a text of this type refers to, as it stands there. */
function referencesIn(contentType: string, text: string): string[] {
  const patterns: Readonly<Record<string, RegExp>> = {
    "text/html": /\b(?:src|href)="([^"]*)"/g,
    "text/css": /(?:url\(\s*["']?|@import\s+["'])([^"')]{1,40})/g,
    "text/javascript": /\burl: "([^"]*)"/g,
  };
  const pattern = patterns[contentType.split(";")[0] ?? ""];
  if (pattern === undefined) throw new Error(`no pattern for ${contentType}`);
  return [...text.matchAll(pattern)].map(([, reference = ""]) => reference);
}

async function page(path: string): Promise<{ contentType: string; text: string; response: Response }> {
  const response = await fetch(new URL(path, gateway.baseUrl));
  expect(response.status, path).toBe(200);
  return { contentType: response.headers.get("content-type") ?? "", text: await response.text(), response };
}

describe("the page of the API", () => {
  test("needs no key, and all that it is made of lies on the gateway", async () => {
    const { contentType, text, response } = await page("/docs");
    expect(contentType).toBe("text/html; charset=utf-8");
    const assets = referencesIn(contentType, text).filter((reference) => reference !== "data:,");
    expect(assets).toEqual(["docs/swagger-ui.css", "docs/swagger-ui-bundle.js", "docs/start.js"]);
    for (const asset of assets) {
      const { contentType: type } = await page(new URL(asset, response.url).pathname);
      expect(type).toMatch(asset.endsWith(".css") ? /^text\/css/ : /^text\/javascript/);
    }
  });

  test("loads no font, image or style of another host", async () => {
    const { contentType, text } = await page("/docs/swagger-ui.css");
    const references = referencesIn(contentType, text);
    expect(references.length).toBeGreaterThan(0);
    expect(references.filter((reference) => !reference.startsWith("data:"))).toEqual([]);
  });

  test("shows the gateway's own document, and sends it to nobody for validation", async () => {
    const { text, contentType, response } = await page("/docs/start.js");
    const [document = ""] = referencesIn(contentType, text);
    // Scripts resolve addresses against their page.
    expect(new URL(document, new URL("/docs", response.url)).pathname).toBe("/api/v1/openapi.json");
    expect(text).toContain("validatorUrl: null");
    const shown = await fetch(new URL(document, gateway.baseUrl));
    expect([shown.status, shown.headers.get("content-type")]).toEqual([200, "application/json"]);
    await shown.text();
  });

  test.for(["/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js"])(
    "lets a browser load and call nothing but the gateway: %s",
    async (path) => {
      const { response } = await page(path);
      const policy = response.headers.get("content-security-policy") ?? "";
      const directives = new Map(
        policy.split("; ").map((line) => [line.split(" ")[0], line.split(" ").slice(1)]),
      );
      expect(directives.get("default-src")).toEqual(["'self'"]);
      expect(directives.get("connect-src")).toBeUndefined();
      expect(policy).not.toMatch(/unsafe|\*|https?:/);
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    },
  );

  test("serves nothing else of the package it comes from", async () => {
    for (const path of [
      "/docs/",
      "/docs/index.html",
      "/docs/..%2fpackage.json",
      "/docs/oauth2-redirect.html",
    ]) {
      const response = await fetch(gateway.baseUrl + path);
      expect([path, response.status]).toEqual([path, 404]);
      await response.text();
    }
  });
});
