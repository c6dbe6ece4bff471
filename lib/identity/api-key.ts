import { hash, randomBytes } from "node:crypto";

const secretBytes = 32;
/** 32 characters at least, so that a key an operator chose cannot be short; base64url, as ours are. */
const keyPattern = /^sk-[A-Za-z0-9_-]{32,128}$/;
const hashPattern = /^[0-9a-f]{64}$/;

/** A new API key: `sk-` and 256 random bits in base64url. */
export function generateApiKey(random: (size: number) => Buffer = randomBytes): string {
  return `sk-${random(secretBytes).toString("base64url")}`;
}

/** Whether a text has the form of an API key; says nothing about whether it is known. */
export function isApiKey(text: string): boolean {
  return keyPattern.test(text);
}

/** SHA-256 of a key in 64 hex characters: the key's name everywhere, and all that is stored of it. */
export function hashApiKey(key: string): string {
  return hash("sha256", key, "hex");
}

/** Whether a text has the form of a key's hash. */
export function isKeyHash(text: string): boolean {
  return hashPattern.test(text);
}

/** A key for people to recognise, such as `sk-abc…wxyz`; 7 of its characters. */
export function maskApiKey(key: string): string {
  return `${key.slice(0, 6)}…${key.slice(-4)}`;
}
