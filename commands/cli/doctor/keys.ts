import { stat } from "node:fs/promises";
import { join } from "node:path";
import { issuers } from "../../../lib/identity/issuer.ts";
import { keyFilesIn } from "../../../lib/identity/key-files.ts";
import { isPublicServiceJwk, parseJson, readServiceKey } from "../../../lib/identity/service-key.ts";
import { readIfPresent } from "../../../lib/runtime/whole-file.ts";
import { readMasterKeys } from "../../../lib/secrets/master-keys.ts";
import { type Finding, notChecked, type Surroundings } from "./check.ts";

const madeBy = "make it with service-key create";
/** What other users of a machine may do with a file. */
const othersMask = 0o077;
/** 32 random bytes have about 30 different ones. */
const fewestBytes = 16;
const fewestCharacters = 16;

/** The operator's own key. */
export async function checkAdminKey({ env, dataDir }: Surroundings): Promise<Finding> {
  const path = env.ADMIN_KEY_FILE || keyFilesIn(join(dataDir, "keys")).keyFile("operator");
  const what = "the operator's key";
  try {
    await readServiceKey(path, "operator");
  } catch (thrown) {
    const { message: found } = thrown as Error;
    return { what, health: "wrong", found, remedy: `set ADMIN_KEY_FILE to it, or ${madeBy}` };
  }
  const { mode } = await stat(path);
  if ((mode & othersMask) === 0) return { what, health: "ok", found: `${path} is well-formed` };
  return { what, health: "look", found: `others may read ${path}`, remedy: `chmod 600 ${path}` };
}

/** The public keys that processes know each other by. */
export async function checkKeySet({ env, dataDir, isStandalone }: Surroundings): Promise<Finding> {
  const what = "the processes' public keys";
  const given =
    env.SERVICE_JWKS_FILE || (isStandalone ? keyFilesIn(join(dataDir, "keys")).jwksFile : undefined);
  if (given === undefined) return notChecked(what, "SERVICE_JWKS_FILE");
  const text = await readIfPresent(given);
  if (text === undefined) return { what, health: "wrong", found: `${given} is not there`, remedy: madeBy };
  const { keys } = (parseJson(text) ?? {}) as { keys?: unknown };
  const known = Array.isArray(keys) ? keys.filter((key) => isPublicServiceJwk(key)) : [];
  const missing = issuers.filter((issuer) => !known.some(({ iss }) => iss === issuer));
  if (missing.length === 0) return { what, health: "ok", found: `${known.length} keys, of every process` };
  const found = `${given} has no key of ${missing.join(", ")}`;
  return {
    what,
    health: "wrong",
    found,
    remedy: "run service-key create on the directory of the private keys",
  };
}

/** The keys that secrets are sealed with at rest. */
export async function checkMasterKeys({ env, dataDir, isStandalone }: Surroundings): Promise<Finding> {
  const what = "the master keys";
  const path = join(dataDir, "keys", "master-keys");
  const text = env.MASTER_KEYS || (isStandalone ? await readIfPresent(path) : undefined);
  if (text === undefined || text === "") {
    if (!isStandalone) return notChecked(what, "MASTER_KEYS");
    return {
      what,
      health: "wrong",
      found: `${path} is not there`,
      remedy: "restore it from the backup: what it sealed can't be read without",
    };
  }
  const source = env.MASTER_KEYS ? "MASTER_KEYS" : path;
  try {
    const keys = readMasterKeys(text.trim(), source);
    const weak = keys.filter(({ key }) => new Set(key.export()).size < fewestBytes);
    if (weak.length === 0) return { what, health: "ok", found: `${keys.length}, the first is ${keys[0].id}` };
    const found = `${weak.map(({ id }) => id).join(", ")}: not random, as in an example`;
    const remedy =
      "put a new one first (openssl rand -base64 32), run provider-key reseal and destination reseal";
    return { what, health: "wrong", found, remedy };
  } catch (thrown) {
    const found = (thrown as Error).message.replace("configuration: ", "");
    return { what, health: "wrong", found, remedy: "a key is made with openssl rand -base64 32" };
  }
}

/** Keys that the first account is given, which stay as good as they are. */
export async function checkBootstrapKeys({ env }: Surroundings): Promise<readonly Finding[]> {
  const names = ["BOOTSTRAP_INFERENCE_KEY", "BOOTSTRAP_MANAGEMENT_KEY"];
  return names.flatMap((name): Finding[] => {
    const key = env[name] ?? "";
    if (key === "" || new Set(key).size >= fewestCharacters) return [];
    const remedy = "disable it with key disable and make another with key create";
    return [{ what: name, health: "wrong", found: "it can be guessed, as in an example", remedy }];
  });
}
