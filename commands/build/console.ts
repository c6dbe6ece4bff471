/**
 * Builds the console into console/dist, by Vite, a development dependency: `npm run build` does it in any case;
 * with `--when-stale`, before a start, only where what it is made of has changed since, and never so that a start fails.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";

const root = join(import.meta.dirname, "..", "..", "console");
const dist = join(root, "dist");
/** Says what the build was made of. */
const stamp = join(dist, ".inputs");
const inputs = ["src", "gen", "index.html", "package.json", "vite.config.ts"];

/** Builds it, unless it is there and nothing has changed that it is made of. */
export function buildConsole({ whenStale = false } = {}): void {
  const wanted = hashOfInputs();
  if (whenStale && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  rmSync(stamp, { force: true });
  // Errors alone: what rolldown says of other people's modules has nothing to act on.
  execFileSync(process.execPath, [vite(), "build", root, "--logLevel", "error"], {
    stdio: "inherit",
    // Whatever it is here: with any other value React's own checks for development come along.
    env: { ...process.env, NODE_ENV: "production" },
  });
  writeFileSync(stamp, wanted);
}

function hashOfInputs(): string {
  const hash = createHash("sha256");
  for (const input of inputs) {
    for (const path of filesBelow(join(root, input)))
      hash.update(relative(root, path)).update("\0").update(readFileSync(path));
  }
  return hash.digest("hex");
}

function filesBelow(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function vite(): string {
  const { resolve } = createRequire(join(root, "package.json"));
  return join(resolve("vite/package.json"), "..", "bin", "vite.js");
}

/** Whether the packages that the build needs are installed; in an image without development packages they are not. */
function canBuild(): boolean {
  try {
    return (
      existsSync(root) &&
      vite() !== "" &&
      createRequire(join(root, "package.json")).resolve("react-aria-components") !== ""
    );
  } catch {
    return false;
  }
}

if (import.meta.main) {
  if (!process.argv.includes("--when-stale")) buildConsole();
  else if (process.env.CONSOLE !== "off" && canBuild()) {
    try {
      buildConsole({ whenStale: true });
    } catch (thrown) {
      console.error(`the console was not built: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  }
}
