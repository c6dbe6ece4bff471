import { globSync, statSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";

/** Files that a bundle was made of, by their paths from the root: bytes, and when they were changed in whole Unix ms. */
export interface BundleInputs {
  readonly files: Readonly<Record<string, readonly [bytes: number, changedMs: number]>>;
}

/** Files besides modules by which a bundle comes out otherwise: what it is made by, and which packages there are. */
const makers = ["package.json", "package-lock.json", "commands/build.ts", "commands/build/*.ts"];

/**
 * What commands/run.cjs tells by whether a bundle is fresh. Packages are taken to be those of package-lock.json; the
 * catalogue is no part of the bundle. A file that was changed since the build began makes it stale from the start.
 */
export function inputsOf(root: string, moduleIds: readonly string[], begunMs: number): BundleInputs {
  const own = moduleIds.filter((id) => isAbsolute(id) && !id.includes("node_modules"));
  const paths = [...own.map((id) => relative(root, id)), ...globSync(makers, { cwd: root })];
  return {
    files: Object.fromEntries(
      [...new Set(paths)].sort().map((path) => {
        const { size, mtimeMs } = statSync(join(root, path));
        return [path, [size, mtimeMs < begunMs ? Math.trunc(mtimeMs) : -1]];
      }),
    ),
  };
}
