import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const examples = new URL("../../../catalog/examples/", import.meta.url);

/** A directory with catalogue files, and how to take it away. */
export interface CatalogFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** Writes files into a directory of their own. */
export async function catalogFolder(files: Readonly<Record<string, string>>): Promise<CatalogFolder> {
  const path = await mkdtemp(join(tmpdir(), "catalog-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  return { path, remove: () => rm(path, { recursive: true }) };
}

/**
 * An example of catalog/examples at an address of this machine, as an operator would move it; all else stands. A path of
 * its base URL stays.
 */
export async function exampleAt(slug: string, origin: string): Promise<string> {
  const text = await readFile(new URL(`${slug}.yaml`, examples), "utf8");
  const [, indent = "", url = ""] = /^( +)base_url: (\S+)$/m.exec(text) ?? [];
  const { pathname } = new URL(url);
  const address = `${indent}base_url: ${origin}${pathname === "/" ? "" : pathname}\n${indent}private_address: true`;
  return text.replace(/^ +private_address: .*\n/m, "").replace(/^ +base_url: .*$/m, address);
}
