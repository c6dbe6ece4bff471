import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFile, readIfPresent } from "../runtime/whole-file.ts";
import { readMasterKeys } from "./master-keys.ts";

/**
 * The master keys in a file, as readMasterKeys takes them; makes the file with one new key, readable by its owner only,
 * where there is none. It is never replaced: of two processes that start at once, one makes it and both read it. Throws
 * ConfigError when it is malformed.
 */
export async function ensureMasterKeys(path: string): Promise<string> {
  const text = ((await readIfPresent(path)) ?? (await makeMasterKeys(path))).trim();
  readMasterKeys(text, path);
  return text;
}

async function makeMasterKeys(path: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const id = `k${randomBytes(4).toString("hex")}`;
  await makeFile(path, `${id}:${randomBytes(32).toString("base64")}\n`, 0o600);
  return readFile(path, "utf8");
}
