import { randomUUID } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";

/** The text of a file; undefined where there is none. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}

/** Makes a file that appears whole and on disk, and leaves one that is there: of two who make it at once, one does. */
export async function makeFile(path: string, text: string, mode: number): Promise<void> {
  const draft = await writeDraft(path, text, mode);
  try {
    await link(draft, path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Puts a file in the place of the one that is there; it appears whole and on disk. */
export async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  await rename(await writeDraft(path, text, mode), path);
}

async function writeDraft(path: string, text: string, mode: number): Promise<string> {
  const draft = `${path}.${randomUUID()}.tmp`;
  await writeFile(draft, text, { mode, flag: "wx", flush: true });
  return draft;
}
