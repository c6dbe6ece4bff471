import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";

/** The repository's root folder. */
export const repositoryRoot = fileURLToPath(new URL("../../", import.meta.url));

/** A TypeScript source file with its syntax tree. */
export interface SourceFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly parsed: ReturnType<typeof parseSync>;
}

const unlistedFolders = new Set(["node_modules", ".git", ".data", ".test-output", "dist", ".dist.new"]);

/** Every file that belongs to the repository: what git tracks or would track, or without git what lies there. */
export function listFiles(root: string = repositoryRoot): string[] {
  return (listWithGit(root) ?? walk(root, "")).sort();
}

/** Undefined in a source archive, and where git is missing or refuses another user's clone. */
function listWithGit(root: string): string[] | undefined {
  if (!existsSync(join(root, ".git"))) return undefined;
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 64 << 20 });
  if (status !== 0) return undefined;
  // A file that is deleted but not committed yet is still listed.
  const paths = stdout.split("\0").filter((path) => path !== "" && existsSync(join(root, path)));
  return [...new Set(paths)];
}

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (unlistedFolders.has(entry.name)) return [];
    return entry.isDirectory() ? walk(root, path) : [path];
  });
}

/** The text of one of the repository's files, or undefined for a binary one. */
export function readText(path: string): string | undefined {
  const bytes = readFileSync(join(repositoryRoot, path));
  return bytes.includes(0) ? undefined : bytes.toString("utf8");
}

/** Parses one source text; throws when it is no TypeScript. */
export function parseSource(path: string, text: string): SourceFile {
  const parsed = parseSync(path, text);
  const error = parsed.errors[0];
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  return { path, text, parsed };
}

/** Every TypeScript file of the repository that people write, parsed. */
export function readSources(paths: readonly string[]): SourceFile[] {
  return paths
    .filter((path) => /\.tsx?$/.test(path) && !/^(console\/)?gen\//.test(path))
    .map((path) => parseSource(path, readText(path) ?? ""));
}

/** Whether a file is a test, a suite of tests, or something that only tests use. */
export function isTestFile(path: string): boolean {
  return /\.(test|suite)\.ts$/.test(path) || path.startsWith("test/") || path.includes("/__fixtures__/");
}

/** The line, counted from 1, that a position in a text is on. */
export function lineAt(text: string, position: number): number {
  let line = 1;
  for (
    let index = text.indexOf("\n");
    index >= 0 && index < position;
    index = text.indexOf("\n", index + 1)
  ) {
    line += 1;
  }
  return line;
}
