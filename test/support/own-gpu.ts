import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Catalog } from "../../providers/catalog/catalog.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import type { ProviderManifest } from "../../providers/contract.ts";
import { settingsReaders } from "../../providers/registry.ts";

const examples = join(builtInCatalogDirectory, "examples");

/** The text of an example that comes along. */
export function readExample(...path: readonly string[]): Promise<string> {
  return readFile(join(examples, ...path), "utf8");
}

/** A CATALOG_DIR with some of the examples that come along, as an operator would copy them. */
export async function copyExamples(...names: readonly string[]) {
  const directory = await mkdtemp(join(tmpdir(), "catalog-"));
  for (const name of names) await cp(join(examples, name), join(directory, name), { recursive: true });
  return { directory, remove: () => rm(directory, { recursive: true }) };
}

/** What the examples of one provider make a catalogue of. */
export async function loadExamples(
  manifest: ProviderManifest,
  ...names: readonly string[]
): Promise<Catalog> {
  const { directory, remove } = await copyExamples(...names);
  try {
    const settings = settingsReaders([manifest]);
    return await loadCatalog({ directories: [directory], providerSlugs: [manifest.slug], settings });
  } finally {
    await remove();
  }
}
