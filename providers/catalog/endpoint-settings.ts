import { readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { type ReadSettings, SettingsFault } from "../declared-endpoint.ts";
import type { ReadCatalogFile } from "./check.ts";
import { toImage } from "./image-load.ts";
import type { CatalogFile, EndpointEntry } from "./schema.ts";

/** Largest file that a setting may name. */
const maxFileBytes = 1024 * 1024;

/** Catalogue files with the settings that calls carry, and what is wrong with those that are written. */
export interface FilesWithSettings {
  readonly files: readonly ReadCatalogFile[];
  /** Each `<file>: <path in the file>: <fault>`. */
  readonly faults: readonly string[];
  /** What stands for an entry whose settings were read. */
  readonly entries: ReadonlyMap<EndpointEntry, EndpointEntry>;
}

/** Has each endpoint's settings read by its provider, where that has a way to. */
export async function withSettings(
  files: readonly ReadCatalogFile[],
  readers: ReadonlyMap<string, ReadSettings>,
): Promise<FilesWithSettings> {
  const faults: string[] = [];
  const entries = new Map<EndpointEntry, EndpointEntry>();
  for (const { path, content } of files) {
    const read = readers.get(content.provider.slug);
    if (read === undefined) continue;
    for (const [index, entry] of (content.endpoints ?? []).entries()) {
      const { settings, fault } = await readEndpoint(entry, read, dirname(path));
      if (fault !== undefined) faults.push(`${path}: endpoints.${index}.settings: ${fault}`);
      entries.set(entry, { ...entry, settings });
    }
  }
  const withEntries = (content: CatalogFile): CatalogFile =>
    content.endpoints === undefined
      ? content
      : { ...content, endpoints: content.endpoints.map((entry) => entries.get(entry) ?? entry) };
  return {
    files: files.map(({ path, content }) => ({ path, content: withEntries(content) })),
    faults,
    entries,
  };
}

async function readEndpoint(entry: EndpointEntry, read: ReadSettings, directory: string) {
  const { settings = {}, passthrough = [], image } = entry;
  const declared = { settings, passthrough, image: image === undefined ? undefined : toImage(image) };
  try {
    return { settings: { ...(await read(declared, (name) => readBeside(directory, name))) } };
  } catch (thrown) {
    if (!(thrown instanceof SettingsFault)) throw thrown;
    return { settings, fault: thrown.message };
  }
}

/** Text of a file in the directory of the catalogue or below it. */
async function readBeside(directory: string, name: string): Promise<string> {
  const relative = normalize(name);
  if (isAbsolute(relative) || relative.startsWith("..")) {
    throw new SettingsFault(`${name} must lie in the directory of this file or below it`);
  }
  const path = join(directory, relative);
  try {
    if ((await stat(path)).size > maxFileBytes) throw new SettingsFault(`${name} is larger than 1 MiB`);
    return await readFile(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof SettingsFault) throw thrown;
    throw new SettingsFault(`${name} can't be read (${(thrown as NodeJS.ErrnoException).code})`);
  }
}
