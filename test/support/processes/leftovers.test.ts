import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { spawnOwner } from "../postgres/owner-process.ts";
import { postmastersOn } from "../postgres/postmaster.ts";
import { temporaryDirectory } from "../postgres/temporary-directory.ts";
import { endLeftovers } from "./leftovers.ts";
import { startStandalone } from "./standalone.ts";

const hasProc = process.platform === "linux";

test("a process that its test has left is ended, with its database and its files", async () => {
  const dataDir = await temporaryDirectory();
  const { child } = await startStandalone(dataDir);
  await endLeftovers();
  expect(await child.exited).not.toBe("SIGKILL");
  if (hasProc) expect(await postmastersOn(dataDir)).toEqual([]);
  expect(existsSync(dataDir)).toBe(false);
});

test("a database server whose owner was killed is ended, too", async () => {
  const dataDir = await temporaryDirectory();
  const owner = spawnOwner({ dataDir, durable: false });
  await owner.url;
  owner.child.kill("SIGKILL");
  await owner.end();
  if (hasProc) expect(await postmastersOn(dataDir)).toHaveLength(1);
  await endLeftovers();
  if (hasProc) expect(await postmastersOn(dataDir)).toEqual([]);
  expect(existsSync(dataDir)).toBe(false);
});
