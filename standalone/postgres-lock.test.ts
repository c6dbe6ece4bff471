import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StartError } from "../lib/runtime/start-error.ts";
import { temporaryDirectory } from "../test/support/postgres/temporary-directory.ts";
import { lockDirectory } from "./postgres-lock.ts";

let directory: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
});

afterEach(() => rm(directory, { recursive: true, force: true }));

const lockModule = new URL("./postgres-lock.ts", import.meta.url).href;

/** A process that takes the lock, says so and stays until it is killed. */
async function lockingProcess() {
  const script = `
    const { lockDirectory } = await import(${JSON.stringify(lockModule)});
    lockDirectory(process.argv[1]);
    console.log("locked");
    process.stdin.resume();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, directory], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  expect(String((await once(child.stdout, "data"))[0])).toBe("locked\n");
  return child;
}

test("a directory is one process's until that process is killed, and nothing has to be cleared then", async () => {
  const child = await lockingProcess();
  expect(() => lockDirectory(directory)).toThrow(
    new StartError(`DATA_DIR ${directory} is in use by process ${child.pid}`),
  );
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await readFile(join(directory, "owner.pid"), "utf8")).toBe(`${child.pid}\n`);
  lockDirectory(directory).release();
});

test("one process does not get a directory twice before it lets go", () => {
  const lock = lockDirectory(directory);
  expect(() => lockDirectory(directory)).toThrow(`in use by process ${process.pid}`);
  lock.release();
  lock.release();
  expect(existsSync(join(directory, "owner.pid"))).toBe(false);
  lockDirectory(directory).release();
});

test("a refusal does not weaken the lock that it met", async () => {
  const lock = lockDirectory(directory);
  expect(() => lockDirectory(directory)).toThrow("in use");
  const script = `
    const { lockDirectory } = await import(${JSON.stringify(lockModule)});
    lockDirectory(process.argv[1]);`;
  const other = spawn(process.execPath, ["--input-type=module", "-e", script, directory], {
    stdio: "ignore",
  });
  expect((await once(other, "exit"))[0]).toBe(1);
  lock.release();
});

test("the lock decides, not the process id beside it", async () => {
  await writeFile(join(directory, "owner.pid"), `${process.ppid}\n`);
  lockDirectory(directory).release();
});

test("a place that can't be locked is named", () => {
  const missing = join(directory, "missing");
  expect(() => lockDirectory(missing)).toThrow(`DATA_DIR ${missing} can't be locked`);
});
