import { readFile } from "node:fs/promises";
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from "jose";
import { StartError } from "../runtime/start-error.ts";
import { type Issuer, isIssuer } from "./issuer.ts";

/**
 * The private key of an issuer as its file holds it: a JWK (RFC 7517, RFC 8037) of an Ed25519 key that names the key
 * (`kid`, its thumbprint) and, in a member of our own, the issuer (`iss`).
 */
export type PrivateServiceJwk = JWK & { iss: Issuer; kid: string; d: string };

/** The public half of an issuer's key, as it stands in the key set. */
export type PublicServiceJwk = JWK & { iss: Issuer; kid: string };

/** The public halves of all issuers' keys: what SERVICE_JWKS_FILE holds. An issuer may have several. */
export interface ServiceJwks {
  keys: PublicServiceJwk[];
}

/** An issuer's private key, ready to sign with. */
export interface ServiceKey {
  readonly issuer: Issuer;
  readonly keyId: string;
  readonly privateKey: CryptoKey;
}

/** A new Ed25519 key for each of the issuers, and the set of their public halves. */
export async function generateServiceKeys(
  names: readonly Issuer[],
): Promise<{ privateKeys: PrivateServiceJwk[]; jwks: ServiceJwks }> {
  const privateKeys = await Promise.all(names.map(generateServiceKey));
  return { privateKeys, jwks: { keys: privateKeys.map(publicHalf) } };
}

async function generateServiceKey(issuer: Issuer): Promise<PrivateServiceJwk> {
  const { privateKey } = await generateKeyPair("EdDSA", { extractable: true });
  const jwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint(jwk);
  return { ...jwk, alg: "EdDSA", use: "sig", kid, iss: issuer } as PrivateServiceJwk;
}

/** What of a private key the other processes need to check its tokens. */
export function publicHalf(key: PrivateServiceJwk): PublicServiceJwk {
  const { d: _private, ...rest } = key;
  return rest;
}

/** Whether a value is the private key of an issuer as `generateServiceKeys` makes them. */
export function isPrivateServiceJwk(value: unknown): value is PrivateServiceJwk {
  return isPublicServiceJwk(value, { withPrivatePart: true });
}

/** Whether a value is an Ed25519 key that names itself and its issuer, without its private part unless asked. */
export function isPublicServiceJwk(
  value: unknown,
  { withPrivatePart } = { withPrivatePart: false },
): value is PublicServiceJwk {
  if (typeof value !== "object" || value === null) return false;
  const { kty, crv, x, d, kid, iss } = value as Record<string, unknown>;
  const isEd25519 = kty === "OKP" && crv === "Ed25519" && typeof x === "string";
  const hasPrivatePart = typeof d === "string";
  return isEd25519 && hasPrivatePart === withPrivatePart && typeof kid === "string" && isIssuer(iss);
}

/** Reads the private key of `issuer` from its file. Throws StartError when it is missing, malformed or another's. */
export async function readServiceKey(path: string, issuer: Issuer): Promise<ServiceKey> {
  const jwk = await readPrivateJwk(path);
  if (jwk.iss !== issuer) throw new StartError(`${path} holds the key of ${jwk.iss}, not of ${issuer}`);
  return importServiceKey(jwk).catch(() => {
    throw new StartError(`${path} holds no usable Ed25519 key`);
  });
}

/** Reads a private key without importing it. Throws StartError when the file is missing or malformed. */
export async function readPrivateJwk(path: string): Promise<PrivateServiceJwk> {
  const text = await readFile(path, "utf8").catch((thrown: NodeJS.ErrnoException) => {
    throw new StartError(`the key file ${path} can't be read (${thrown.code ?? "unknown error"})`);
  });
  const value = parseJson(text);
  if (!isPrivateServiceJwk(value)) {
    throw new StartError(
      `${path} is no private key: expected an Ed25519 JWK with the members kid, iss and d`,
    );
  }
  return value;
}

/** A private JWK ready to sign with. */
export async function importServiceKey(jwk: PrivateServiceJwk): Promise<ServiceKey> {
  const { iss, kid, kty = "OKP", crv = "Ed25519", x = "", d } = jwk;
  const privateKey = await importJWK({ kty, crv, x, d } as JWK, "EdDSA");
  if (privateKey instanceof Uint8Array) throw new TypeError("not an asymmetric key");
  return { issuer: iss, keyId: kid, privateKey };
}

/** A text as JSON; undefined when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
