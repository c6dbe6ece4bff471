import { isTestFile } from "./source-files.ts";

const topLevel: ReadonlySet<string> = new Set(
  [
    // What people read and run.
    "README.md CONTRIBUTING.md CHANGELOG.md LICENSE NOTICE docs",
    "proto gen catalog lib packages providers services gateway console standalone commands deploy test bench",
    // What tools look for there.
    "package.json package-lock.json tsconfig.json biome.json buf.yaml buf.gen.yaml vitest.config.ts",
    ".ci .gitattributes .gitignore .npmrc .nvmrc .dockerignore",
  ].flatMap((names) => names.split(" ")),
);

const drawerNames: ReadonlySet<string> = new Set([
  "util",
  "utils",
  "helper",
  "helpers",
  "common",
  "shared",
  "misc",
  "core",
]);
const drawerParts: ReadonlySet<string> = new Set(["util", "utils", "helper", "helpers", "misc"]);
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const manifests = [/^providers\/[^/]+\/index\.ts$/, /^services\/destination\/types\/[^/]+\/index\.ts$/];

/** Breaches by a file's name and place alone; empty when it keeps the rules. */
export function checkPath(path: string): string[] {
  const parts = path.split("/");
  const top = parts[0] ?? "";
  if (!topLevel.has(top)) return [`${path}: ${top} does not belong at the top level`];
  if (top === "gen" || path.startsWith("console/gen/") || parts.includes("__fixtures__")) return [];
  const findings: string[] = [];
  const name = parts.at(-1) ?? "";
  const folders = parts.slice(0, -1);
  const stem = name.replace(/\..*$/, "");
  if ((top === "lib" || top === "packages") && parts.length < 3)
    findings.push(`${path}: ${top}/ holds folders only`);
  if ([stem, ...folders].some(isDrawer)) findings.push(`${path}: named after no job (a drawer)`);
  if (!/\.tsx?$/.test(name)) return findings;
  if (name === "types.ts") findings.push(`${path}: named after no job (a drawer)`);
  if (stem === "index" && !manifests.some((manifest) => manifest.test(path))) {
    findings.push(`${path}: a barrel; only an adapter's manifest is called index.ts`);
  }
  const words = name.replace(/(\.(test|suite|config))?\.tsx?$/, "");
  if (![words, ...folders].every((part) => kebabCase.test(part) || part === ".ci")) {
    findings.push(`${path}: not in kebab-case`);
  }
  return findings;
}

function isDrawer(name: string): boolean {
  return drawerNames.has(name) || name.split("-").some((part) => drawerParts.has(part));
}

/** Folders of other people's machines, which no text of ours has a reason to name. */
const machinePath = new RegExp(
  String.raw`(?<![\w.*)}\]-])/(${["work", "farm", "root", "home"].join("|")})(?=[/\s"'${"`"},;:)]|$)`,
);
const unfinished = new RegExp(String.raw`\b(${["TO" + "DO", "FIX" + "ME", "HA" + "CK"].join("|")})\b`);

/** Breaches by the text of any file, line by line. */
export function checkText(path: string, text: string): string[] {
  const findings: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (machinePath.test(line)) findings.push(`${path}:${index + 1}: names a path of one machine`);
    if (unfinished.test(line)) findings.push(`${path}:${index + 1}: left unfinished`);
  }
  return findings;
}

/** Files whose lines are counted, and how many they may have. */
export function lineLimits(path: string): { limit: number; hardLimit: number } {
  return isTestFile(path) ? { limit: 500, hardLimit: 500 } : { limit: 300, hardLimit: 400 };
}

/** A file or function that may be longer than the limit, no longer than `lines`, until someone has split it. */
export interface SizeException {
  /** A path, or a path and a function: `lib/x/y.ts#name`. */
  readonly what: string;
  readonly lines: number;
  /** The day it was granted. */
  readonly since: `${number}-${number}-${number}`;
}

/** One measured file or function. */
export interface Measured {
  readonly what: string;
  readonly lines: number;
  readonly limit: number;
  readonly hardLimit: number;
}

/** Sizes over their limit, and exceptions that are no longer needed or could be smaller: the list only shrinks. */
export function checkSizes(measured: readonly Measured[], exceptions: readonly SizeException[]): string[] {
  const findings: string[] = [];
  const granted = new Map(exceptions.map((exception) => [exception.what, exception]));
  for (const { what, lines, limit, hardLimit } of measured) {
    const exception = granted.get(what);
    granted.delete(what);
    const allowed = Math.min(exception?.lines ?? limit, hardLimit);
    if (lines > allowed) findings.push(`${what}: ${lines} lines, at most ${allowed}`);
    else if (exception !== undefined && lines <= limit) findings.push(`${what}: needs its exception no more`);
    else if (exception !== undefined && lines < exception.lines)
      findings.push(`${what}: lower its exception to ${lines}`);
  }
  for (const what of granted.keys()) findings.push(`${what}: has an exception but does not exist`);
  return findings;
}
