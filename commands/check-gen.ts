/**
 * Checks that gen/ is what `npm run gen` makes of the protos now: generates into a temporary folder, names every file
 * that differs and exits 1 if there is one.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const binaries = join(root, "node_modules", ".bin");
const scratch = mkdtempSync(join(tmpdir(), "check-gen-"));

try {
  execFileSync(join(binaries, "buf"), ["generate", "--output", scratch], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, PATH: `${binaries}${delimiter}${process.env.PATH ?? ""}` },
  });
  const differences = compareFolders(readFolder(join(root, "gen")), readFolder(join(scratch, "gen")));
  for (const difference of differences) console.error(`gen/${difference}`);
  if (differences.length > 0) {
    console.error("gen/ is not what the protos make: run `npm run gen` and commit the result");
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function readFolder(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length + 1), readFileSync(path, "utf8")];
    }),
  );
}

function compareFolders(actual: Map<string, string>, wanted: Map<string, string>): string[] {
  const paths = [...new Set([...actual.keys(), ...wanted.keys()])].sort();
  return paths.flatMap((path) => {
    if (!wanted.has(path)) return `${path}: comes from no proto`;
    if (!actual.has(path)) return `${path}: missing`;
    return actual.get(path) === wanted.get(path) ? [] : `${path}: differs`;
  });
}
