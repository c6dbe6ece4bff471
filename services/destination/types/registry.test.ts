import { globSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { destinationTypes } from "./registry.ts";

const url = "https://hook.example/";

function typeOf(slug: string) {
  const type = destinationTypes.get(slug);
  if (type === undefined) throw new Error(`no type ${slug}`);
  return type;
}

describe("the registry", () => {
  test("has every type that has a folder, by its slug", () => {
    const folders = globSync("*/index.ts", { cwd: import.meta.dirname }).map((path) => dirname(path));
    expect(folders).toContain("webhook");
    expect([...destinationTypes.keys()].sort()).toEqual(folders.sort());
    for (const [slug, type] of destinationTypes) {
      expect(type.slug).toBe(slug);
      expect(slug).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
      expect(type.maxBatchEvents).toBeGreaterThan(0);
    }
  });

  test("reads settings as the type does", () => {
    expect(typeOf("webhook").readConfig({ url })).toEqual({ config: { url, method: "POST", headers: {} } });
    expect(typeOf("webhook").readConfig({})).toEqual({
      issues: [{ path: "config.url", message: "is required" }],
    });
  });

  test("takes settings as they were given or stored", () => {
    expect(typeOf("webhook").urlsOf({ url })).toEqual([new URL(url)]);
  });
});
