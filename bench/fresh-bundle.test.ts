import { mkdir, mkdtemp, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { hasFreshBundle } from "./fresh-bundle.ts";

test("a bundle is fresh while its inputs are as they were", async () => {
  const root = await mkdtemp(join(tmpdir(), "fresh-bundle-"));
  onTestFinished(() => rm(root, { recursive: true }));
  expect(hasFreshBundle(root)).toBe(false);
  const input = join(root, "a.ts");
  await writeFile(input, "1;");
  const { size, mtimeMs } = await stat(input);
  await mkdir(join(root, "dist"));
  const inputs = { files: { "a.ts": [size, Math.trunc(mtimeMs)] } };
  await writeFile(join(root, "dist/inputs.json"), JSON.stringify(inputs));
  expect(hasFreshBundle(root)).toBe(true);
  await utimes(input, new Date(), new Date(mtimeMs + 5000));
  expect(hasFreshBundle(root)).toBe(false);
  await rm(input);
  expect(hasFreshBundle(root)).toBe(false);
});
