import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { silentLog } from "../runtime/log.ts";
import { generateServiceKeys, type PrivateServiceJwk, publicHalf } from "./service-key.ts";
import { openServiceKeySet, type ServiceKeySet } from "./service-key-set.ts";

const intervalMs = 2000;
let folder: string;
let path: string;
let clock: ManualClock;
let first: PrivateServiceJwk;
let second: PrivateServiceJwk;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "key-set-"));
  path = join(folder, "service.jwks.json");
  clock = new ManualClock();
  const { privateKeys } = await generateServiceKeys(["gateway", "gateway"]);
  [first, second] = privateKeys as [PrivateServiceJwk, PrivateServiceJwk];
});

afterEach(() => rm(folder, { recursive: true }));

async function store(...keys: object[]): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify({ keys }));
  await rename(`${path}.new`, path);
}

function open(): Promise<ServiceKeySet> {
  return openServiceKeySet({ path, log: silentLog, clock, checkIntervalMs: intervalMs });
}

describe("the key set", () => {
  test("finds keys by id, several of one issuer too", async () => {
    await store(publicHalf(first), publicHalf(second));
    const keys = await open();
    expect((await keys.find(first.kid))?.issuer).toBe("gateway");
    expect((await keys.find(second.kid))?.issuer).toBe("gateway");
    expect(await keys.find("other")).toBeUndefined();
  });

  test("is read again when the file changed, after the interval and not before", async () => {
    await store(publicHalf(first));
    const keys = await open();
    const { version } = keys;
    await store(publicHalf(second));
    expect(await keys.find(second.kid)).toBeUndefined();
    clock.advance(intervalMs);
    expect(await keys.find(second.kid)).toBeDefined();
    expect(await keys.find(first.kid)).toBeUndefined();
    expect(keys.version).toBeGreaterThan(version);
  });

  test("stays as it was while the file is broken, and heals", async () => {
    await store(publicHalf(first));
    const keys = await open();
    const { version } = keys;
    for (const text of ["{", "[]", '{"keys":[{"kty":"RSA","iss":"gateway","kid":"a"}]}']) {
      await writeFile(path, text);
      clock.advance(intervalMs);
      expect(await keys.find(first.kid)).toBeDefined();
    }
    await rm(path);
    clock.advance(intervalMs);
    expect(await keys.find(first.kid)).toBeDefined();
    expect(keys.version).toBe(version);
    await store(publicHalf(first), publicHalf(second));
    clock.advance(intervalMs);
    expect(await keys.find(second.kid)).toBeDefined();
  });

  test("leaves out keys of issuers it does not know", async () => {
    await store({ ...publicHalf(first), iss: "someone" }, publicHalf(second));
    const keys = await open();
    expect(await keys.find(first.kid)).toBeUndefined();
    expect(await keys.find(second.kid)).toBeDefined();
  });
});

test("a start without a usable file says why", async () => {
  await expect(open()).rejects.toThrow(`${path} can't be read (ENOENT)`);
  await writeFile(path, "no json");
  await expect(open()).rejects.toThrow("is no JWK set");
  await store(first);
  await expect(open()).rejects.toThrow("must be a public Ed25519 JWK");
  await store(publicHalf(first), { ...publicHalf(second), kid: first.kid });
  await expect(open()).rejects.toThrow("key 2 has the kid of another one");
});
