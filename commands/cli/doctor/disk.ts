import { statfs } from "node:fs/promises";
import { type Finding, reasonOf, type Surroundings } from "./check.ts";

const gibibyte = 2 ** 30;
const fewestBytes = gibibyte / 4;

/** Room where standalone keeps its data. */
export async function checkDisk({ dataDir, isStandalone }: Surroundings): Promise<readonly Finding[]> {
  if (!isStandalone) return [];
  const what = "disk space";
  try {
    const { bavail, bsize } = await statfs(dataDir);
    return [diskFinding(dataDir, bavail * bsize)];
  } catch (thrown) {
    const found = `${dataDir} can't be looked at (${reasonOf(thrown)})`;
    return [{ what, health: "wrong", found, todo: "set DATA_DIR to the data directory" }];
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
    todo: "make room, or move DATA_DIR",
  };
}
