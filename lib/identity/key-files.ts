import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { makeFile, readIfPresent, replaceFile } from "../runtime/whole-file.ts";
import { type Issuer, issuers } from "./issuer.ts";
import {
  generateServiceKeys,
  isPublicServiceJwk,
  type PrivateServiceJwk,
  type PublicServiceJwk,
  parseJson,
  publicHalf,
  readPrivateJwk,
} from "./service-key.ts";

/*
 * Owns a folder with the private key of each issuer and the set of all public ones.
 * - A private key file appears whole or not at all and is never replaced: of two processes that start at once, one
 *   makes it and both read it.
 * - The set always has the public half of every private key in the folder, and keeps the other keys that it holds
 *   until it is pruned.
 */

/** The files of a folder of keys. */
export interface KeyFiles {
  keyFile(issuer: Issuer): string;
  readonly jwksFile: string;
}

/** Where a folder has its keys; the operator's is `admin.jwk`. */
export function keyFilesIn(directory: string): KeyFiles {
  return {
    keyFile: (issuer) => join(directory, issuer === "operator" ? "admin.jwk" : `${issuer}.jwk`),
    jwksFile: join(directory, "service.jwks.json"),
  };
}

/** Makes what is missing of a folder of keys, private ones readable by their owner only, and says where they are. */
export async function ensureKeyFiles(directory: string): Promise<KeyFiles> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const files = keyFilesIn(directory);
  const privateKeys = await Array.fromAsync(issuers, (issuer) =>
    ensureKeyFile(files.keyFile(issuer), issuer),
  );
  const stored = await readStoredKeys(files.jwksFile);
  const missing = privateKeys.filter(({ kid }) => !stored.some((key) => key.kid === kid));
  if (missing.length > 0) {
    await writeKeySet(files.jwksFile, [...stored, ...missing.map(publicHalf)]);
  }
  return files;
}

/**
 * Takes the public keys out of the set that no private key of the folder belongs to, and says which: the last step of a
 * rotation. A folder without a key for every issuer is refused, as keys held elsewhere would go. Throws StartError.
 */
export async function pruneKeySet(directory: string): Promise<readonly PublicServiceJwk[]> {
  const files = keyFilesIn(directory);
  const kept = new Set<string>();
  for (const issuer of issuers) kept.add((await readPrivateJwk(files.keyFile(issuer))).kid);
  const stored = await readStoredKeys(files.jwksFile);
  const removed = stored.filter(({ kid }) => !kept.has(kid));
  if (removed.length > 0)
    await writeKeySet(
      files.jwksFile,
      stored.filter(({ kid }) => kept.has(kid)),
    );
  return removed;
}

function writeKeySet(path: string, keys: readonly PublicServiceJwk[]): Promise<void> {
  return replaceFile(path, `${JSON.stringify({ keys }, null, 2)}\n`, 0o644);
}

async function ensureKeyFile(path: string, issuer: Issuer): Promise<PrivateServiceJwk> {
  if ((await readIfPresent(path)) === undefined) {
    const { privateKeys } = await generateServiceKeys([issuer]);
    await makeFile(path, `${JSON.stringify(privateKeys[0], null, 2)}\n`, 0o600);
  }
  return readPrivateJwk(path);
}

async function readStoredKeys(path: string): Promise<PublicServiceJwk[]> {
  const stored = parseJson((await readIfPresent(path)) ?? "") as { keys?: unknown } | undefined | null;
  return Array.isArray(stored?.keys) ? stored.keys.filter((key) => isPublicServiceJwk(key)) : [];
}
