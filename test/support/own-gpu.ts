import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtInCatalogDirectory } from "../../providers/catalog/load.ts";

/** A CATALOG_DIR with some of the examples that come along, as an operator would copy them. */
export async function copyExamples(...names: readonly string[]) {
  const directory = await mkdtemp(join(tmpdir(), "catalog-"));
  for (const name of names) {
    await cp(join(builtInCatalogDirectory, "examples", name), join(directory, name), { recursive: true });
  }
  return { directory, remove: () => rm(directory, { recursive: true }) };
}
