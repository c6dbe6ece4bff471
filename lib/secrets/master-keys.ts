import { createSecretKey, type KeyObject } from "node:crypto";
import { ConfigError } from "../runtime/config.ts";

/** A key that secrets are sealed under at rest. */
export interface MasterKey {
  /** Names the key in what it sealed; 1 to 32 letters, digits, `-` or `_`. */
  readonly id: string;
  /** 256 bits; never shown by inspection or logs. */
  readonly key: KeyObject;
}

/** Master keys, at least one: the first seals, all open. */
export type MasterKeys = readonly [MasterKey, ...MasterKey[]];

const form = "must be id:key[,id:key…], each key 32 bytes in base64 and each id different";
const keyIdPattern = /^[A-Za-z0-9_-]{1,32}$/;
/** 32 bytes in base64 (RFC 4648, section 4). */
const keyPattern = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Reads master keys such as `2026b:<44 characters of base64>,2026a:<…>`. `source` names the variable or the file in
 * the error. Throws ConfigError, without a word of the text.
 */
export function readMasterKeys(text: string, source = "MASTER_KEYS"): MasterKeys {
  const keys = text.split(",").map(readMasterKey);
  const [first, ...others] = keys.filter((key) => key !== undefined);
  const isWhole =
    others.length === keys.length - 1 && new Set(keys.map((key) => key?.id)).size === keys.length;
  if (first === undefined || !isWhole) throw new ConfigError(`configuration: ${source} ${form}`);
  return [first, ...others];
}

function readMasterKey(text: string): MasterKey | undefined {
  const [id = "", encoded = "", ...rest] = text.trim().split(":");
  if (!keyIdPattern.test(id) || !keyPattern.test(encoded) || rest.length > 0) return undefined;
  const bytes = Buffer.from(encoded, "base64");
  // Two texts of which one has stray last bits would be one key.
  if (bytes.toString("base64") !== encoded) return undefined;
  return { id, key: createSecretKey(bytes) };
}
