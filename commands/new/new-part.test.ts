import { existsSync, readFileSync } from "node:fs";
import { glob } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../test/rules/source-files.ts";
import { newDestination, newProvider } from "./new-part.ts";

const contributing = readFileSync(new URL("../../CONTRIBUTING.md", import.meta.url), "utf8");

test("the names that CONTRIBUTING takes for its examples can be taken", () => {
  const commands = [...contributing.matchAll(/npm run new -- (provider|destination) (\S+)$/gm)];
  expect(commands.map(([, kind]) => kind)).toEqual(["provider", "destination"]);
  const [[, , provider = ""] = [], [, , destination = ""] = []] = commands;
  expect(contributing).toContain(`provider: { slug: ${provider},`);
  // Who has followed the text to the letter has taken them.
  if (!existsSync(new URL(`../../providers/${provider}`, import.meta.url))) {
    const { files } = newProvider(provider);
    expect(files.get("providers/manifests.ts")).toContain(`from "./${provider}/index.ts"`);
    expect(files.get("README.md")).toContain(`${provider.toUpperCase()}_API_KEY`);
  }
  const types = "services/destination/types";
  if (!existsSync(new URL(`../../${types}/${destination}`, import.meta.url))) {
    const { files } = newDestination(destination);
    expect(files.get(`${types}/registry.ts`)).toContain(`from "./${destination}/index.ts"`);
  }
});

test("every template is written by something", async () => {
  const written = [...newProvider("a-new-one").files, ...newDestination("a-new-one").files];
  const templates = await Array.fromAsync(glob("commands/new/**/*.template", { cwd: repositoryRoot }));
  const changed = ["providers/manifests.ts", "README.md", "types/registry.ts", "docs/destinations.md"];
  expect(written).toHaveLength(templates.length + changed.length);
  for (const [path, text] of written) expect(text, path).not.toContain("{{");
  const ids = /(?<=id: )[0-9a-f]{8}-[0-9a-f-]+/g;
  const catalog = written.find(([path]) => path.startsWith("catalog/"))?.[1] ?? "";
  expect(new Set(catalog.match(ids)).size).toBe(2);
});

describe("a name is refused", () => {
  test.for([
    ["Acme", "no slug"],
    ["a--b", "no slug"],
    ["9lives", "no slug"],
    ["../out", "no slug"],
    ["local", "there already"],
    ["routing", "there already"],
    ["vendor-compatible", "no provider's folder"],
    ["switch", "a word of the language"],
    ["built-in-providers", "a name builtInProviders of its own"],
    ["my-utils", "a drawer"],
    ["gateway", "names the provider gateway"],
  ] as const)("for a provider: %s: %s", ([slug, why]) => {
    expect(() => newProvider(slug)).toThrow(why);
  });

  test.for([
    ["Star", "no slug"],
    ["webhook", "there already"],
    ["otlp", "there already"],
    ["destination-types", "a name destinationTypes of its own"],
  ] as const)("for a destination: %s: %s", ([slug, why]) => {
    expect(() => newDestination(slug)).toThrow(why);
  });
});
