import { randomBytes, randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { readMasterKeys } from "./master-keys.ts";

/**
 * The master keys in a file, as readMasterKeys takes them; makes the file with one new key, readable by its owner only, where there is none. It appears
 * whole or not at all and is never replaced: of two processes that start at once, one makes it and both read it. Throws
 * ConfigError when it is malformed.
 */
export async function ensureMasterKeys(path: string): Promise<string> {
  const text = ((await readIfPresent(path)) ?? (await makeFile(path))).trim();
  readMasterKeys(text, path);
  return text;
}

async function makeFile(path: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomUUID()}.tmp`;
  const id = `k${randomBytes(4).toString("hex")}`;
  try {
    const text = `${id}:${randomBytes(32).toString("base64")}\n`;
    await writeFile(draft, text, { mode: 0o600, flag: "wx", flush: true });
    await link(draft, path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(path, "utf8");
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}
