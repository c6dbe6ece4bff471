import { posix } from "node:path";

/** The texts of the repository's documents, by path, and every path that can be linked to: files and folders. */
export interface Documents {
  readonly texts: ReadonlyMap<string, string>;
  readonly targets: ReadonlySet<string>;
}

/** Documents as a rule looks at them. */
export function documentsOf(paths: readonly string[], read: (path: string) => string): Documents {
  const folders = paths.flatMap((path) => {
    const parts = path.split("/").slice(0, -1);
    return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
  });
  const documents = paths.filter((path) => path.endsWith(".md"));
  return {
    texts: new Map(documents.map((path) => [path, read(path)])),
    targets: new Set([...paths, ...folders, "."]),
  };
}

/** Links and pictures of one document that lead nowhere in the repository: no file, no folder, no such heading. */
export function checkLinks(path: string, { texts, targets }: Documents): string[] {
  return linksOf(texts.get(path) ?? "").flatMap(({ line, link }) => {
    const [file = "", heading] = link.split("#", 2);
    const target = file === "" ? path : posix.join(posix.dirname(path), file).replace(/\/$/, "");
    if (!targets.has(target)) return [`${path}:${line}: ${link} leads nowhere`];
    const text = texts.get(target);
    if (heading === undefined || (text !== undefined && anchorsOf(text).includes(heading))) return [];
    return [`${path}:${line}: ${link} names no heading`];
  });
}

/** The documents that a document links to. */
export function linkedFrom(path: string, { texts }: Documents): ReadonlySet<string> {
  const links = linksOf(texts.get(path) ?? "").map(({ link }) => link.split("#", 1)[0] ?? "");
  return new Set(links.map((link) => posix.join(posix.dirname(path), link)));
}

function linksOf(text: string): { line: number; link: string }[] {
  return proseOf(text).flatMap((line, index) =>
    [...line.replaceAll(/`[^`]*`/g, "``").matchAll(/\]\(([^)\s]+)\)|<img[^>]* src="([^"]+)"/g)]
      .map(([, link = "", source = ""]) => link || source)
      .filter((link) => !/^[a-z][a-z0-9+.-]*:/.test(link))
      .map((link) => ({ line: index + 1, link })),
  );
}

/** The lines of a document; those of code blocks are empty. */
function proseOf(text: string): string[] {
  let isCode = false;
  return text.split("\n").map((line) => {
    const isFence = line.trimStart().startsWith("```");
    if (isFence) isCode = !isCode;
    return isFence || isCode ? "" : line;
  });
}

/** What GitHub makes of a document's headings. */
function anchorsOf(text: string): string[] {
  return proseOf(text).flatMap((line) => {
    const title = /^#+ (.+)$/.exec(line)?.[1];
    if (title === undefined) return [];
    const words = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    return words.replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
  });
}
