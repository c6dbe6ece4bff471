import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { startChild } from "../support/processes/child.ts";
import { copyRepository } from "../support/repository-copy.ts";

const provider = "example-voices";
const type = "example-traces";

let root: string;
let written: string[];

/** Runs a script in the copy; the lines that it printed. Throws when it fails. */
async function run(script: string, ...args: string[]): Promise<readonly string[]> {
  const child = startChild(join(root, script), { cwd: root, args });
  const code = await child.exited;
  if (code !== 0) throw new Error(`${script} ${args.join(" ")}: ${code}\n${child.lines.join("\n")}`);
  return child.lines;
}

beforeAll(async () => {
  root = await copyRepository();
  const lines = [
    ...(await run("commands/new.ts", "provider", provider)),
    ...(await run("commands/new.ts", "destination", type)),
  ];
  written = lines.filter((line) => /^[\w./-]+\.(ts|md|yaml)$/.test(line));
});

test("what npm run new writes has the right types and format", async () => {
  expect(written).toContain(`providers/${provider}/index.ts`);
  expect(written).toContain(`services/destination/types/${type}/index.ts`);
  const sources = written.filter((path) => path.endsWith(".ts"));
  await run("node_modules/.bin/biome", "check", ...sources);
  await run("node_modules/.bin/tsc", "-p", ".");
});

test("what npm run new writes passes its tests and those of the whole", { timeout: 300_000 }, async () => {
  const tests = [`providers/${provider}`, "providers/catalog", "providers/registry", "commands/new-part"];
  const more = [`services/destination/types/${type}`, "services/destination/types/registry"];
  const rules = ["test/tidy.test.ts", "test/architecture.test.ts"];
  const lines = await run(
    "node_modules/.bin/vitest",
    "run",
    "--project",
    "ordinary",
    ...tests,
    ...more,
    ...rules,
  );
  expect(lines.join("\n")).toContain(`${provider}-image.test.ts`);
});

test("a second time nothing is written", async () => {
  const registry = await readFile(join(root, "providers/manifests.ts"), "utf8");
  await expect(run("commands/new.ts", "provider", provider)).rejects.toThrow("is there already");
  expect(await readFile(join(root, "providers/manifests.ts"), "utf8")).toBe(registry);
});
