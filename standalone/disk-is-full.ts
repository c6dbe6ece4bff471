import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { StartError } from "../lib/runtime/start-error.ts";
import { locationFileName } from "./postgres-home.ts";

/** As Node's file system, PostgreSQL's answers (disk_full) and whatever else writes to a disk say it. */
const codes: readonly unknown[] = ["ENOSPC", "EDQUOT", "53100"];
const words = /no space left on device|disk quota exceeded|database or disk is full/i;
/** That is of a file system in memory, wherever the data is. */
const otherPlace = /shared memory/i;

/** What to tell the operator when a start failed for want of room; undefined when it failed for something else. */
export async function diskIsFull(thrown: unknown, dataDir: string): Promise<StartError | undefined> {
  if (!chainOf(thrown).some(wantsRoom)) return undefined;
  const home = await readFile(join(dataDir, locationFileName), "utf8").catch(() => "");
  const elsewhere = home.trim() === "" ? "" : `, whose database is in ${home.trim()}`;
  return new StartError(
    `no room is left on the disk of DATA_DIR ${resolve(dataDir)}${elsewhere}; make some, or set another directory`,
    { cause: thrown },
  );
}

function wantsRoom(error: Error): boolean {
  if (otherPlace.test(error.message)) return false;
  return codes.includes((error as NodeJS.ErrnoException).code) || words.test(error.message);
}

/** An error and what it was caused by. */
function chainOf(thrown: unknown): readonly Error[] {
  const chain: Error[] = [];
  for (let error = thrown; error instanceof Error && !chain.includes(error); error = error.cause)
    chain.push(error);
  return chain;
}
