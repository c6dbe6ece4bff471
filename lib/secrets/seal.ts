import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { MasterKeys } from "./master-keys.ts";

/*
 * Owns the form in which secrets stand in a database: AES-256-GCM (NIST SP 800-38D) under a master key.
 *
 *   1 byte   version, 1
 *   1 byte   length of the key id
 *   n bytes  key id
 *   12 bytes nonce, random for each sealing
 *   16 bytes tag
 *   …        ciphertext of the text in UTF-8
 *
 * - The first master key seals; the key named in the sealed bytes opens, so that keys can be rotated.
 * - Version, key id and what the caller associates are bound in: a sealed secret moved to another record does not open.
 * - No error and no log line has a word of a secret.
 */

const version = 1;
const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 2;

/** Why sealed bytes can't be opened. */
export type SealFault = "malformed" | "key_unknown" | "not_authentic";

const messages: Readonly<Record<SealFault, string>> = {
  malformed: "sealed bytes are malformed",
  key_unknown: "sealed under a master key that is not configured",
  not_authentic: "sealed bytes were changed, or belong to another record",
};

/** Sealed bytes that can't be opened. */
export class SealError extends Error {
  override readonly name = "SealError";
  readonly fault: SealFault;

  constructor(fault: SealFault, options?: ErrorOptions) {
    super(messages[fault], options);
    this.fault = fault;
  }
}

/** Seals secrets and opens them again; `associated` names the record that a secret belongs to, the same both times. */
export interface Sealer {
  /** The id of the key that seals. */
  readonly keyId: string;
  seal(text: string, associated: readonly string[]): Buffer;
  /** Throws SealError. */
  open(sealed: Uint8Array, associated: readonly string[]): string;
  /** The id of the key that sealed. Throws SealError when the bytes are malformed. */
  keyIdOf(sealed: Uint8Array): string;
}

/** A sealer over master keys. One key must not seal more than 2^32 times, as nonces are random. */
export function createSealer(keys: MasterKeys, random: (size: number) => Buffer = randomBytes): Sealer {
  const [current] = keys;
  return {
    keyId: current.id,
    seal(text, associated) {
      const id = Buffer.from(current.id);
      const header = Buffer.concat([Buffer.from([version, id.length]), id]);
      const nonce = random(nonceBytes);
      const cipher = createCipheriv(algorithm, current.key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(bound(header, associated));
      const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([header, nonce, cipher.getAuthTag(), ciphertext]);
    },
    open(sealed, associated) {
      const { header, keyId, nonce, tag, ciphertext } = split(sealed);
      const key = keys.find(({ id }) => id === keyId)?.key;
      if (key === undefined) throw new SealError("key_unknown");
      const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
      decipher.setAAD(bound(header, associated)).setAuthTag(tag);
      const text = decipher.update(ciphertext);
      try {
        return Buffer.concat([text, decipher.final()]).toString("utf8");
      } catch (thrown) {
        throw new SealError("not_authentic", { cause: thrown });
      }
    },
    keyIdOf: (sealed) => split(sealed).keyId,
  };
}

/** What a sealing is bound to; no two lists of associated texts have the same bytes. */
function bound(header: Uint8Array, associated: readonly string[]): Buffer {
  return Buffer.concat([header, Buffer.from(JSON.stringify(associated))]);
}

function split(sealed: Uint8Array) {
  const nonceAt = headerBytes + (sealed[1] ?? 0);
  const tagAt = nonceAt + nonceBytes;
  const textAt = tagAt + tagBytes;
  if (sealed[0] !== version || nonceAt === headerBytes || sealed.length < textAt) {
    throw new SealError("malformed");
  }
  return {
    header: sealed.subarray(0, nonceAt),
    keyId: Buffer.from(sealed.subarray(headerBytes, nonceAt)).toString("latin1"),
    nonce: sealed.subarray(nonceAt, tagAt),
    tag: sealed.subarray(tagAt, textAt),
    ciphertext: sealed.subarray(textAt),
  };
}
