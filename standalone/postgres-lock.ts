/**
 * Who owns a directory. The lock is SQLite's on an empty file: the kernel holds it for the process and lets go of it
 * however the process ends, so there is nothing stale to clear and no process id to trust.
 *
 * 1. Only SQLite opens the lock file: closing any other handle on it would drop the process's lock (POSIX).
 * 2. The process id beside it is for the message only and decides nothing.
 * 3. IMMEDIATE takes one lock that only one can have. EXCLUSIVE climbs through several: two at once refuse each other.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StartError } from "../lib/runtime/start-error.ts";

/** A directory that this process owns until it ends or releases it. */
export interface DirectoryLock {
  release(): void;
}

/** SQLite's result codes, https://sqlite.org/rescode.html. */
const sqliteBusy = 5;

/** Takes a directory for this process alone. Throws StartError when another process, or this one, has it already. */
export function lockDirectory(directory: string): DirectoryLock {
  const ownerFile = join(directory, "owner.pid");
  const file = openLockFile(directory);
  try {
    file.exec("BEGIN IMMEDIATE"); // 3.
  } catch (thrown) {
    file.close();
    if ((thrown as { errcode?: number }).errcode !== sqliteBusy) throw cannotLock(directory, thrown);
    throw new StartError(`DATA_DIR ${directory} is in use by ${describeOwner(ownerFile)}`, { cause: thrown });
  }
  writeFileSync(ownerFile, `${process.pid}\n`); // 2.
  return {
    release() {
      if (!file.isOpen) return;
      rmSync(ownerFile, { force: true });
      file.close();
    },
  };
}

function openLockFile(directory: string): DatabaseSync {
  try {
    return new DatabaseSync(join(directory, "lock"), { timeout: 0 }); // 1.
  } catch (thrown) {
    throw cannotLock(directory, thrown);
  }
}

function cannotLock(directory: string, thrown: unknown): StartError {
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return new StartError(`DATA_DIR ${directory} can't be locked (${why}); is it writable?`, { cause: thrown });
}

function describeOwner(ownerFile: string): string {
  try {
    return `process ${Number(readFileSync(ownerFile, "utf8")) || "?"}`;
  } catch {
    return "another process";
  }
}
