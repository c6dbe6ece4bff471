import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { type DeclaredEndpoint, SettingsFault } from "../declared-endpoint.ts";
import { loadCatalog } from "./load.ts";

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "catalog-"));
  await mkdir(join(directory, "graphs"));
  await writeFile(join(directory, "graphs", "one.json"), '{"a":1}');
  await writeFile(join(directory, "large.json"), Buffer.alloc(1024 * 1024 + 1));
});
afterAll(async () => await rm(directory, { recursive: true }));

const model = {
  id: "acme/brush",
  permaslug: "acme/brush-2030-01-31",
  name: "Brush",
  description: "Draws.",
  created: "2030-01-31",
  medium: "image",
};

async function load(graph: string) {
  const seen: DeclaredEndpoint[] = [];
  const endpoint = {
    model: "acme/brush",
    upstream_model: "brush",
    image: { formats: ["png"], sizes: ["64x64"], max_n: 2, streaming: true, max_prompt_characters: 10 },
    passthrough: ["tone"],
    settings: { graph },
    prices: [{ billable: "output_image", unit: "image", usd_per_million: "0" }],
  };
  await writeFile(
    join(directory, "acme.yaml"),
    stringify({ provider: { slug: "acme", name: "Acme" }, models: [model], endpoints: [endpoint] }),
  );
  const read = async (declared: DeclaredEndpoint, readFile: (name: string) => Promise<string>) => {
    seen.push(declared);
    const text = await readFile(String(declared.settings.graph));
    if (!text.startsWith("{")) throw new SettingsFault("the graph is none");
    return { graph: JSON.parse(text) as unknown };
  };
  const settings = new Map([["acme", read]]);
  const catalog = await loadCatalog({ directories: [directory], providerSlugs: ["acme"], settings });
  return { seen, settings: catalog.imageModel("acme/brush")?.endpoints[0]?.settings };
}

test("settings are read by their provider once, with files that lie beside", async () => {
  const { seen, settings } = await load("graphs/one.json");
  expect(settings).toEqual({ graph: { a: 1 } });
  expect(seen).toMatchObject([
    {
      settings: { graph: "graphs/one.json" },
      passthrough: ["tone"],
      image: {
        sizes: { kind: "list" },
        maxN: 2,
        qualities: [],
        maxReferences: 0,
        mask: false,
        streaming: true,
      },
    },
  ]);
});

test.each([
  ["none.json", "none.json can't be read (ENOENT)"],
  ["../one.json", "../one.json must lie in the directory of this file or below it"],
  ["/etc/hosts", "/etc/hosts must lie in the directory of this file or below it"],
  ["large.json", "large.json is larger than 1 MiB"],
  ["acme.yaml", "the graph is none"],
])("what is wrong with them ends the start in one line: %s", async (graph, fault) => {
  const line = `catalogue: ${join(directory, "acme.yaml")}: endpoints.0.settings: ${fault}`;
  await expect(load(graph)).rejects.toThrow(line);
});
