import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { readIfPresent } from "../../../lib/runtime/whole-file.ts";
import { locationFileName } from "../../../standalone/postgres-home.ts";
import { type Finding, reasonOf, type Surroundings } from "./check.ts";

const gibibyte = 2 ** 30;
const fewestBytes = gibibyte / 4;

/** Room where standalone keeps its data. */
export async function checkDisk({ dataDir, isStandalone }: Surroundings): Promise<readonly Finding[]> {
  if (!isStandalone) return [];
  // The database may lie elsewhere.
  const home = (await readIfPresent(join(dataDir, locationFileName)))?.trim() ?? "";
  return Promise.all([dataDir, ...(home === "" ? [] : [home])].map(checkDirectory));
}

async function checkDirectory(directory: string): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(directory);
    return diskFinding(directory, bavail * bsize);
  } catch (thrown) {
    const found = `${directory} can't be looked at (${reasonOf(thrown)})`;
    return { what: "disk space", health: "wrong", found, remedy: "set DATA_DIR to the data directory" };
  }
}

/** Exported for its test: no disk can be filled there. */
export function diskFinding(directory: string, freeBytes: number): Finding {
  const what = "disk space";
  const found = `${(freeBytes / gibibyte).toFixed(1)} GiB free for ${directory}`;
  if (freeBytes >= gibibyte) return { what, health: "ok", found };
  return {
    what,
    health: freeBytes < fewestBytes ? "wrong" : "look",
    found,
    remedy: "make room, or move DATA_DIR",
  };
}
