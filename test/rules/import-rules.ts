import { posix } from "node:path";
import { isTestFile, lineAt, type SourceFile } from "./source-files.ts";

/** One import of a file: what it names, and the file of ours that this is, if it is one. */
export interface Import {
  readonly from: string;
  readonly line: number;
  readonly specifier: string;
  /** Path from the root; undefined for packages and Node's own modules. */
  readonly target: string | undefined;
}

/** Every import, re-export and dynamic import of a literal in a file. */
export function importsOf(file: SourceFile): Import[] {
  const { module } = file.parsed;
  const requests = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest }) => moduleRequest ?? []),
    ),
    ...module.dynamicImports.flatMap(({ moduleRequest: { start, end } }) => {
      const literal = /^["'`](.*)["'`]$/.exec(file.text.slice(start, end));
      return literal === null ? [] : { start, value: literal[1] ?? "" };
    }),
  ];
  return requests.map(({ start, value }) => ({
    from: file.path,
    line: lineAt(file.text, start),
    specifier: value,
    target: value.startsWith(".") ? posix.join(posix.dirname(file.path), value) : undefined,
  }));
}

/** The part of the repository that a file belongs to: `lib/runtime`, `packages/painter`, `services/speech`, `providers/contract` … */
export function partOf(path: string): string {
  const [top = "", second = ""] = path.split("/");
  if (top === "lib" || top === "services" || top === "packages") return `${top}/${second}`;
  if (top !== "providers") return top;
  if (/^(contract|declared-endpoint|provider-http)\.ts$/.test(second)) return "providers/contract";
  if (second === "manifests.ts" || second === "configured.ts") return "providers/manifests";
  if (second === "registry.ts") return "providers/registry";
  if (second.endsWith(".ts")) return "providers/suites";
  if (/^(upstream|catalog|routing)$/.test(second)) return `providers/${second}`;
  return second.endsWith("-compatible") ? "providers/compatible" : `providers/adapter/${second}`;
}

/** Which other folders of lib a folder of lib may import, besides runtime. */
export type LibEdges = Readonly<Record<string, readonly string[]>>;

const everything = /./;
const adapterParts = /^(providers\/(contract|compatible|upstream)|lib\/http)$/;

/** Breaches of the arrows between the parts of the repository. */
export function checkArrows(imports: readonly Import[], libEdges: LibEdges): string[] {
  return imports.flatMap(({ from, line, target }) => {
    if (target === undefined) return [];
    if (posix.basename(target) === "main.ts") return [`${from}:${line}: imports ${target}, an entry point`];
    const [source, destination] = [partOf(from), partOf(target)];
    if (source === destination) return [];
    const allowed =
      (destination === "test" ? isDevelopmentFile(from) : mayImport(source, destination, libEdges)) ||
      (isTestFile(from) && mayTestImport(source, destination, target));
    if (allowed && !isPackage(source) && !isPackage(destination)) return [];
    return [`${from}:${line}: ${source} must not import ${destination}`];
  });
}

/**
 * A package is imported by its name alone, and neither it nor its tests import anything of the rest. The console is one
 * that nobody imports.
 */
function isPackage(part: string): boolean {
  return part.startsWith("packages/") || part === "console";
}

/** Tests may use suites; those of lib call by RPC, those of providers take the whole list. */
function mayTestImport(source: string, destination: string, target: string): boolean {
  if (isTestFile(target)) return true;
  if (source.startsWith("lib/")) return destination === "lib/rpc";
  return source.startsWith("providers/") && /^providers\/(manifests|registry)$/.test(destination);
}

function mayImport(source: string, destination: string, libEdges: LibEdges): boolean {
  if (source.startsWith("lib/")) {
    const named = libEdges[source.slice("lib/".length)] ?? [];
    return ["gen", "lib/runtime", ...named.map((name) => `lib/${name}`)].includes(destination);
  }
  return (allowedParts(source) ?? /^$/).test(destination);
}

function allowedParts(source: string): RegExp | undefined {
  if (source.startsWith("services/"))
    return /^(gen|lib\/.+|providers\/(contract|catalog|routing|manifests|registry))$/;
  if (source.startsWith("providers/adapter/")) return adapterParts;
  switch (source) {
    case "providers/compatible":
      return adapterParts;
    case "providers/suites":
    case "providers/upstream":
      return /^(providers\/contract|lib\/(http|runtime))$/;
    case "providers/catalog":
      return /^(gen|lib\/.+|providers\/contract)$/;
    case "providers/routing":
      return /^(gen|lib\/.+|providers\/(contract|catalog))$/;
    case "providers/manifests":
      return /^providers\/(contract|compatible|catalog|adapter\/.+)$/;
    case "providers/registry":
      return /^(gen|lib\/.+|providers\/(contract|manifests|upstream|catalog|routing))$/;
    case "gateway":
      return /^(gen|lib\/.+)$/;
    case "standalone":
    case "commands":
    case "bench":
    case "test":
      return everything;
    default:
      return undefined;
  }
}

/** The import circles of a set of files, each as `a -> b -> a`. */
export function findCycles(imports: readonly Import[]): string[] {
  const targets = new Map<string, string[]>();
  for (const { from, target } of imports) {
    if (target !== undefined) targets.set(from, [...(targets.get(from) ?? []), target]);
  }
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]) => {
    const seenAt = trail.indexOf(path);
    if (seenAt >= 0) cycles.push([...trail.slice(seenAt), path].join(" -> "));
    if (seenAt >= 0 || done.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return cycles;
}

/** Packages and the only places that may import them: files, folders (with a slash), or beginnings of a name (`x-`). */
export type PackageImporters = Readonly<Record<string, readonly string[]>>;

/** Imports of packages in places that may not, of packages without an entry, and entries that are no dependency. */
export function checkPackages(
  imports: readonly Import[],
  importers: PackageImporters,
  dependencies: readonly string[],
): string[] {
  const findings = dependencies
    .filter((name) => importers[name] === undefined)
    .map((name) => `${name}: a dependency that the table gives no importer`);
  for (const name of Object.keys(importers)) {
    if (!dependencies.includes(name)) findings.push(`${name}: in the table but no dependency`);
  }
  for (const { from, line, specifier, target } of imports) {
    if (target !== undefined || specifier.startsWith("node:") || isDevelopmentFile(from)) continue;
    const name = packageOf(specifier);
    const places = importers[name] ?? [];
    if (!places.some((place) => (/[/-]$/.test(place) ? from.startsWith(place) : from === place))) {
      findings.push(`${from}:${line}: must not import ${name}`);
    }
  }
  return findings;
}

/** Files that only run while the project is worked on; they may use what tests share, and development dependencies. */
function isDevelopmentFile(path: string): boolean {
  return (
    isTestFile(path) ||
    /^(bench\/|commands\/(new|build)[./]|vitest\.config\.ts$|console\/vite\.config\.ts$)/.test(path)
  );
}

function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return parts.slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
}
