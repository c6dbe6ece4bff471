import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../runtime/log.ts";
import { issuers } from "./issuer.ts";
import { ensureKeyFiles, keyFilesIn, pruneKeySet } from "./key-files.ts";
import { generateServiceKeys, readServiceKey, type ServiceJwks } from "./service-key.ts";
import { openServiceKeySet } from "./service-key-set.ts";
import { createTokenSigner, createTokenVerifier } from "./service-token.ts";

let folder: string;

beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "key-files-")), "keys");
});

afterEach(() => rm(join(folder, ".."), { recursive: true }));

async function contents(): Promise<Record<string, string>> {
  const names = (await readdir(folder)).sort();
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")])),
  );
}

test("a folder gets a key for each issuer and one set with which their tokens are checked", async () => {
  const files = await ensureKeyFiles(folder);
  expect(Object.keys(await contents())).toEqual(
    [
      "account.jwk",
      "admin.jwk",
      "destination.jwk",
      "gateway.jwk",
      "image.jwk",
      "service.jwks.json",
      "speech.jwk",
      "usage.jwk",
    ].sort(),
  );
  const verify = createTokenVerifier(await openServiceKeySet({ path: files.jwksFile, log: silentLog }));
  for (const issuer of issuers) {
    const signer = createTokenSigner(await readServiceKey(files.keyFile(issuer), issuer), "ada");
    expect((await verify(await signer.sign("account"), "account")).issuer).toBe(issuer);
  }
});

test("private keys are for their owner only, and their private part stands nowhere else", async () => {
  const files = await ensureKeyFiles(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  const set = await readFile(files.jwksFile, "utf8");
  for (const issuer of issuers) {
    const path = files.keyFile(issuer);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(set).not.toContain((JSON.parse(await readFile(path, "utf8")) as { d: string }).d);
  }
});

test("a key is rotated without a moment in which either is refused", async () => {
  const files = await ensureKeyFiles(folder);
  const old = createTokenSigner(await readServiceKey(files.keyFile("speech"), "speech"));
  await rm(files.keyFile("speech"));
  await ensureKeyFiles(folder);
  const next = createTokenSigner(await readServiceKey(files.keyFile("speech"), "speech"));
  const verifierOfNow = async () =>
    createTokenVerifier(await openServiceKeySet({ path: files.jwksFile, log: silentLog }));
  const during = await verifierOfNow();
  for (const signer of [old, next]) {
    expect((await during(await signer.sign("account"), "account")).issuer).toBe("speech");
  }
  expect((await pruneKeySet(folder)).map(({ iss }) => iss)).toEqual(["speech"]);
  const after = await verifierOfNow();
  expect((await after(await next.sign("account"), "account")).issuer).toBe("speech");
  await expect(after(await old.sign("account"), "account")).rejects.toThrow();
  expect(await pruneKeySet(folder)).toEqual([]);
});

test("a folder that lacks a private key is not pruned", async () => {
  const files = await ensureKeyFiles(folder);
  await rm(files.keyFile("image"));
  const before = await contents();
  await expect(pruneKeySet(folder)).rejects.toThrow("image.jwk can't be read");
  expect(await contents()).toEqual(before);
});

test("a second time changes nothing", async () => {
  await ensureKeyFiles(folder);
  const before = await contents();
  await ensureKeyFiles(folder);
  expect(await contents()).toEqual(before);
});

test("starts at the same time agree on the keys", async () => {
  await Promise.all(Array.from({ length: 8 }, () => ensureKeyFiles(folder)));
  const { jwksFile, keyFile } = keyFilesIn(folder);
  const { keys } = JSON.parse(await readFile(jwksFile, "utf8")) as ServiceJwks;
  for (const issuer of issuers) {
    const { keyId } = await readServiceKey(keyFile(issuer), issuer);
    expect(keys.map(({ kid }) => kid)).toContain(keyId);
  }
  expect((await readdir(folder)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("what is missing is made again, and other keys of the set stay", async () => {
  const files = await ensureKeyFiles(folder);
  const { jwks } = await generateServiceKeys(["gateway"]);
  const set = JSON.parse(await readFile(files.jwksFile, "utf8")) as ServiceJwks;
  await writeFile(files.jwksFile, JSON.stringify({ keys: [...set.keys, ...jwks.keys] }));
  await rm(files.keyFile("speech"));
  await ensureKeyFiles(folder);
  const { keys } = JSON.parse(await readFile(files.jwksFile, "utf8")) as ServiceJwks;
  const { keyId } = await readServiceKey(files.keyFile("speech"), "speech");
  expect(keys.map(({ kid }) => kid)).toEqual(
    expect.arrayContaining([...set.keys, ...jwks.keys].map(({ kid }) => kid).concat(keyId)),
  );
});

test("a key file that is broken or another's is named", async () => {
  const { keyFile } = await ensureKeyFiles(folder);
  await expect(readServiceKey(keyFile("speech"), "gateway")).rejects.toThrow(
    "holds the key of speech, not of gateway",
  );
  await writeFile(keyFile("speech"), "{}");
  await expect(ensureKeyFiles(folder)).rejects.toThrow(`${keyFile("speech")} is no private key`);
});
