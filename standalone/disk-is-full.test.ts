import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { StartError } from "../lib/runtime/start-error.ts";
import { diskIsFull } from "./disk-is-full.ts";

async function dataDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "disk-is-full-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

test.for([
  Object.assign(new Error("write"), { code: "ENOSPC" }),
  Object.assign(new Error("could not extend file"), { code: "53100" }),
  new StartError("PostgreSQL did not start: FATAL: could not write: No space left on device"),
  new StartError("can't be locked", { cause: new Error("database or disk is full") }),
])("%s is for want of room", async (thrown) => {
  const path = await dataDirectory();
  const line = `no room is left on the disk of DATA_DIR ${path}; make some, or set another directory`;
  expect(await diskIsFull(thrown, path)).toEqual(new StartError(line));
});

test("a database that is elsewhere is named too", async () => {
  const path = await dataDirectory();
  await writeFile(join(path, "postgres-location"), "/elsewhere/db\n");
  const thrown = Object.assign(new Error("write"), { code: "EDQUOT" });
  expect((await diskIsFull(thrown, path))?.message).toContain(`${path}, whose database is in /elsewhere/db;`);
});

test.for([
  new Error("connect"),
  "no space left on device",
  new Error('could not resize shared memory segment "/x": No space left on device'),
])("%s is for something else", async (thrown) => {
  expect(await diskIsFull(thrown, await dataDirectory())).toBeUndefined();
});
