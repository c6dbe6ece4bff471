import { type ESTree, Visitor } from "vite";
import { isTestFile, lineAt, type SourceFile } from "./source-files.ts";

/** Slugs that are English words as well: they count only as `"word/…"` and where something is compared with them. */
const ordinaryWords: ReadonlySet<string> = new Set(["local"]);

/** Folders of providers/ that are no provider. */
const rooms = /^(upstream|catalog|routing|__.*|.*-compatible)$/;

/** The providers that have an adapter, from the paths of the repository. */
export function providerSlugs(paths: readonly string[]): string[] {
  const folders = paths.flatMap((path) => /^providers\/([^/]+)\//.exec(path)?.[1] ?? []);
  return [...new Set(folders)].filter((name) => !rooms.test(name));
}

/** Code outside of providers/ that knows a provider by name, quoted or as a part of an identifier. */
export function checkSlugs(file: SourceFile, slugs: readonly string[]): string[] {
  if (isTestFile(file.path) || /^(providers|catalog|bench)\//.test(file.path)) return [];
  const findings: string[] = [];
  const report = (node: ESTree.Node, slug: string) =>
    findings.push(`${file.path}:${lineAt(file.text, node.start)}: names the provider ${slug}`);
  const distinctive = slugs.filter((slug) => !ordinaryWords.has(slug));
  const checkTextOf = (node: ESTree.Node, text: string) => {
    const slug =
      slugs.find((name) => text.startsWith(`${name}/`)) ?? distinctive.find((name) => text === name);
    if (slug !== undefined) report(node, slug);
  };
  const checkName = (node: ESTree.Node, name: string) => {
    const slug = distinctive.find((candidate) => namesSlug(name, candidate));
    if (slug !== undefined) report(node, slug);
  };
  new Visitor({
    Literal: (node) => (typeof node.value === "string" ? checkTextOf(node, node.value) : undefined),
    TemplateElement: (node) => checkTextOf(node, node.value.cooked ?? ""),
    Identifier: (node) => checkName(node, node.name),
    PrivateIdentifier: (node) => checkName(node, node.name),
    BinaryExpression(node) {
      for (const side of [node.left, node.right]) {
        const word = side.type === "Literal" ? side.value : undefined;
        if (typeof word === "string" && ordinaryWords.has(word) && slugs.includes(word)) report(side, word);
      }
    },
    SwitchCase(node) {
      const word = node.test?.type === "Literal" ? node.test.value : undefined;
      if (typeof word === "string" && ordinaryWords.has(word) && slugs.includes(word)) report(node, word);
    },
  }).visit(file.parsed.program);
  return findings;
}

/** Whether words that follow each other in a name make up the slug: `openAiKey` and `OPENAI_KEY` name `openai`. */
function namesSlug(name: string, slug: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[_$]+/);
  const wanted = slug.replaceAll("-", "");
  return words.some((_, start) => words.some((_, end) => words.slice(start, end + 1).join("") === wanted));
}
