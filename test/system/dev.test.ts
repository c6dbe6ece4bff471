import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { startChild } from "../support/processes/child.ts";
import { copyRepository } from "../support/repository-copy.ts";

test("npm run dev starts anew on a change, on the same data, and ends gracefully", async () => {
  const root = await copyRepository();
  const dataDir = await temporaryDirectory();
  const env = { DATA_DIR: dataDir, PORT: "0", RPC_PORT: "0", METRICS_PORT: "off" };
  const starts: (() => void)[] = [];
  const started = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  for (const { resolve } of started) starts.push(resolve);
  const child = startChild(join(root, "commands", "dev.ts"), {
    env,
    cwd: root,
    detached: true,
    onLine: (line) => {
      if (line.includes('"what":"rest"')) starts.shift()?.();
    },
  });
  await Promise.race([started[0]?.promise, child.exited]);
  const catalog = join(root, "catalog", "local.yaml");
  await writeFile(catalog, `${await readFile(catalog, "utf8")}\n# A change.\n`);
  await Promise.race([started[1]?.promise, child.exited]);
  // As a terminal does on Ctrl-C: everything in its group hears of it.
  process.kill(-child.pid, "SIGINT");
  expect(await child.exited).toBe(0);
  const text = child.lines.join("\n");
  expect(text.match(/making an empty PostgreSQL database/g)).toHaveLength(1);
  expect(text.match(/"what":"rest"/g)).toHaveLength(2);
  expect(text).toContain("Keys are shown when they are made");
  // The database was told to stop, each time, before its process ended.
  await expect(readFile(join(dataDir, "postgres", "cluster", "postmaster.pid"))).rejects.toThrow("ENOENT");
});
