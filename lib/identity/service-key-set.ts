import { readFile, stat } from "node:fs/promises";
import { type CryptoKey, importJWK, type JWK } from "jose";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { StartError } from "../runtime/start-error.ts";
import { type Issuer, isIssuer } from "./issuer.ts";
import { isPublicServiceJwk, parseJson } from "./service-key.ts";

/*
 * Owns the public keys that tokens are checked with, as they stand in SERVICE_JWKS_FILE.
 * 1. The file is looked at no more often than once an interval, and read only when it is another one than before.
 * 2. A file that can't be used changes nothing: the keys read before stay, and the log says why, once a file.
 * 3. `version` grows with every set of keys, so that what was concluded from an older one can be evicted.
 */

/** A public key and the only issuer that it may vouch for. */
export interface VerificationKey {
  readonly issuer: Issuer;
  readonly publicKey: CryptoKey;
}

/** The public keys of all issuers by key id. */
export interface ServiceKeySet {
  /** Grows whenever the keys change. */
  readonly version: number;
  /** The key of that id. Looks at the file first when it has not been looked at for a while. */
  find(keyId: string): Promise<VerificationKey | undefined>;
  /** Looks at the file in the background when it has not been looked at for a while; costs nothing otherwise. */
  touch(): void;
}

interface ServiceKeySetOptions {
  /** A JWK set (RFC 7517) whose keys each name their issuer in `iss`. */
  path: string;
  log: Log;
  clock?: Clock;
  /** How often the file is looked at, at most; defaults to 2 s. */
  checkIntervalMs?: number;
}

/** Opens the set of public keys in a file. Throws StartError when the file can't be used. */
export async function openServiceKeySet(options: ServiceKeySetOptions): Promise<ServiceKeySet> {
  const set = new FileKeySet(options);
  await set.load();
  return set;
}

class FileKeySet implements ServiceKeySet {
  version = 0;
  readonly #path: string;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #checkIntervalMs: number;
  #keys: ReadonlyMap<string, VerificationKey> = new Map();
  #stamp = "";
  #checkedAtMs = 0;
  #checking: Promise<void> | undefined;

  constructor({ path, log, clock = systemClock, checkIntervalMs = 2000 }: ServiceKeySetOptions) {
    this.#path = path;
    this.#log = log;
    this.#clock = clock;
    this.#checkIntervalMs = checkIntervalMs;
  }

  async load(): Promise<void> {
    this.#checkedAtMs = this.#clock.monotonicMs();
    this.#stamp = await this.#readStamp();
    this.#keys = await readKeys(this.#path, this.#log);
    this.version += 1; // 3.
  }

  async find(keyId: string): Promise<VerificationKey | undefined> {
    this.touch();
    if (this.#checking !== undefined) await this.#checking;
    return this.#keys.get(keyId);
  }

  touch(): void {
    if (this.#clock.monotonicMs() - this.#checkedAtMs < this.#checkIntervalMs) return; // 1.
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
  }

  async #check(): Promise<void> {
    this.#checkedAtMs = this.#clock.monotonicMs();
    try {
      if ((await this.#readStamp()) === this.#stamp) return;
      await this.load();
      this.#log.info({ keys: this.#keys.size }, "service keys read again");
    } catch (thrown) {
      this.#log.error({ err: thrown }, "the file of service keys can't be used; the keys read before stay"); // 2.
    }
  }

  async #readStamp(): Promise<string> {
    try {
      const { mtimeMs, size, ino } = await stat(this.#path);
      return `${mtimeMs} ${size} ${ino}`;
    } catch (thrown) {
      throw unreadable(this.#path, thrown);
    }
  }
}

async function readKeys(path: string, log: Log): Promise<Map<string, VerificationKey>> {
  const text = await readFile(path, "utf8").catch((thrown: unknown) => {
    throw unreadable(path, thrown);
  });
  const entries = (parseJson(text) as { keys?: unknown } | undefined | null)?.keys;
  if (!Array.isArray(entries)) throw new StartError(`${path} is no JWK set: expected {"keys": [...]}`);
  const keys = new Map<string, VerificationKey>();
  for (const [index, entry] of entries.entries()) {
    const where = `${path}: key ${index + 1}`;
    const { iss } = (entry ?? {}) as { iss?: unknown };
    if (typeof iss === "string" && !isIssuer(iss)) {
      log.warn({ issuer: iss }, "service key of an unknown issuer left out");
      continue;
    }
    if (!isPublicServiceJwk(entry)) {
      throw new StartError(`${where} must be a public Ed25519 JWK with the members kid and iss, without d`);
    }
    if (keys.has(entry.kid)) throw new StartError(`${where} has the kid of another one`);
    keys.set(entry.kid, { issuer: entry.iss, publicKey: await importPublicKey(entry, where) });
  }
  return keys;
}

async function importPublicKey({ kty, crv, x }: JWK, where: string): Promise<CryptoKey> {
  const key = await importJWK({ kty, crv, x } as JWK, "EdDSA").catch(() => undefined);
  if (key === undefined || key instanceof Uint8Array)
    throw new StartError(`${where} is no usable Ed25519 key`);
  return key;
}

function unreadable(path: string, thrown: unknown): StartError {
  const { code = "unknown error" } = thrown as NodeJS.ErrnoException;
  return new StartError(`the file of service keys ${path} can't be read (${code})`);
}
