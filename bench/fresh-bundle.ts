import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * Whether `npm run build` made the bundle in `dist/` of the files as they are now: its list of inputs names each with
 * its size and when it was changed, as commands/run.cjs reads it.
 */
export function hasFreshBundle(root: string): boolean {
  try {
    const { files } = JSON.parse(readFileSync(join(root, "dist/inputs.json"), "utf8")) as {
      files: Readonly<Record<string, readonly [bytes: number, changedMs: number]>>;
    };
    return Object.entries(files).every(([file, [bytes, changedMs]]) => {
      const stat = statSync(join(root, file), { throwIfNoEntry: false });
      return stat?.size === bytes && Math.trunc(stat.mtimeMs) === changedMs;
    });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw thrown;
  }
}
