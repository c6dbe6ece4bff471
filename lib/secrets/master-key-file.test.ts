import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError } from "../runtime/config.ts";
import { ensureMasterKeys } from "./master-key-file.ts";
import { type MasterKeys, readMasterKeys } from "./master-keys.ts";
import { createSealer } from "./seal.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "master-keys-"));
  path = join(folder, "keys", "master-keys");
});

afterEach(() => rm(folder, { recursive: true }));

const ensured = async (file: string) => readMasterKeys(await ensureMasterKeys(file));
const shown = (keys: MasterKeys) => keys.map(({ id, key }) => [id, key.export().toString("hex")]);

test("a file is made once, for its owner only, and holds a key that seals", async () => {
  const keys = await ensured(path);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await stat(join(folder, "keys"))).mode & 0o777).toBe(0o700);
  expect(shown(readMasterKeys((await readFile(path, "utf8")).trim()))).toEqual(shown(keys));
  const sealed = createSealer(keys).seal("secret", []);
  expect(createSealer(await ensured(path)).open(sealed, [])).toBe("secret");
});

test("of processes that start at once all have the same key", async () => {
  const started = await Promise.all(Array.from({ length: 8 }, () => ensured(path)));
  expect(new Set(started.map((keys) => JSON.stringify(shown(keys)))).size).toBe(1);
  expect(await readdir(join(folder, "keys"))).toEqual(["master-keys"]);
});

test("two files have different keys", async () => {
  const other = await ensured(join(folder, "other"));
  expect(shown(await ensured(path))).not.toEqual(shown(other));
});

test("what an operator wrote there is taken, and what is malformed is named without its text", async () => {
  const other = join(folder, "own");
  await writeFile(
    other,
    `new:${Buffer.alloc(32, 2).toString("base64")},old:${Buffer.alloc(32, 1).toString("base64")}\n`,
  );
  expect((await ensured(other)).map(({ id }) => id)).toEqual(["new", "old"]);
  await writeFile(other, "secret-but-malformed");
  const failure = await ensureMasterKeys(other).catch((thrown: unknown) => thrown);
  expect(failure).toBeInstanceOf(ConfigError);
  expect(String(failure)).toContain(other);
  expect(String(failure)).not.toContain("malformed");
});
