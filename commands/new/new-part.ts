import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../../lib/runtime/start-error.ts";
import { checkPath } from "../../test/rules/path-rules.ts";
import { checkSlugs, providerSlugs } from "../../test/rules/slug-rules.ts";
import { listFiles, parseSource, repositoryRoot } from "../../test/rules/source-files.ts";

/** A new part of the repository. */
export interface NewPart {
  /** What is written, by path from the root: new files, and files that get a line. */
  readonly files: ReadonlyMap<string, string>;
  /** What is left to do, for people. */
  readonly next: string;
}

/** A provider that speaks and draws as OpenAI does. Throws StartError where there can be none of that name. */
export function newProvider(slug: string): NewPart {
  const names = namesOf(slug);
  const registry = "providers/manifests.ts";
  checkFree(names, `providers/${slug}`, registry);
  checkIsProvider(slug);
  const files = new Map([
    [`providers/${slug}/index.ts`, render("provider/index.ts", names)],
    [`providers/${slug}/${slug}.test.ts`, render("provider/speech.test.ts", names)],
    [`providers/${slug}/${slug}-image.test.ts`, render("provider/image.test.ts", names)],
    [`test/upstreams/${slug}.ts`, render("provider/stand-in.ts", names)],
    [`catalog/${slug}.yaml`, render("provider/catalog.yaml", names)],
  ]);
  checkPaths(files.keys());
  const importLine = `import { ${names.camel} } from "./${slug}/index.ts";`;
  files.set(registry, register(registry, importLine, /\bbuiltInProviders\b[^=]*= \[[^\]]*/, names.camel));
  const row = `| ${names.Name} | \`${names.CONSTANT}_API_KEY\` | \`${slug}/voice-1\` | \`${slug}/brush-1\` |`;
  files.set("README.md", addRow("README.md", "| provider |", row));
  const next = `Now make it true: the vendor's name as it writes it; the address and paths in providers/${slug}/index.ts; models, voices,
sizes and prices in catalog/${slug}.yaml, in the stand-in and in README's table. Then:

  npm run types && npm test -- providers/${slug} providers/catalog test/upstreams test/tidy.test.ts test/architecture.test.ts

With ${names.CONSTANT}_API_KEY set, npm run dev reaches the vendor.`;
  return { files, next };
}

/** A destination type that speaks OTLP over HTTP. Throws StartError where there can be none of that name. */
export function newDestination(slug: string): NewPart {
  const names = namesOf(slug);
  const types = "services/destination/types";
  const registry = `${types}/registry.ts`;
  checkFree(names, `${types}/${slug}`, registry);
  const files = new Map([
    [`${types}/${slug}/index.ts`, render("destination/index.ts", names)],
    [`${types}/${slug}/${slug}.test.ts`, render("destination/type.test.ts", names)],
  ]);
  checkPaths(files.keys());
  const importLine = `import { ${names.camel} } from "./${slug}/index.ts";`;
  files.set(registry, register(registry, importLine, /\bconst types\b[^=]*= \[[^\]]*/, names.camel));
  const documentation = "docs/destinations.md";
  files.set(documentation, addRow(documentation, "| type |", `| \`${slug}\` | \`endpoint\`, \`token\` |`));
  const next = `Now make it true: the settings, the address and the headers in ${types}/${slug}/index.ts,
and its row in ${documentation}. Then:

  npm run types && npm test -- ${types}/${slug} ${types}/registry test/tidy.test.ts test/architecture.test.ts`;
  return { files, next };
}

interface Names {
  readonly slug: string;
  readonly camel: string;
  readonly Pascal: string;
  readonly Name: string;
  readonly CONSTANT: string;
}

function namesOf(slug: string): Names {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(slug)) {
    throw new StartError(
      `"${slug}" is no slug: lower-case letters, digits and single dashes, a letter first`,
    );
  }
  const words = slug.split("-").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  const Pascal = words.join("");
  const camel = Pascal.charAt(0).toLowerCase() + Pascal.slice(1);
  return { slug, camel, Pascal, Name: words.join(" "), CONSTANT: slug.toUpperCase().replaceAll("-", "_") };
}

function checkFree({ slug, camel }: Names, folder: string, registry: string): void {
  if (existsSync(join(repositoryRoot, folder))) throw new StartError(`${folder} is there already`);
  try {
    parseSource("name.ts", `export const ${camel} = 1;`);
  } catch {
    throw new StartError(`${slug} is a word of the language: nothing can be exported under its name`);
  }
  if (new RegExp(`\\b${camel}\\b`).test(readOwn(registry))) {
    throw new StartError(`${registry} has a name ${camel} of its own`);
  }
}

function checkIsProvider(slug: string): void {
  if (providerSlugs([`providers/${slug}/index.ts`]).length === 0) {
    throw new StartError(
      `providers/${slug} would be no provider's folder: the name is kept for what they share`,
    );
  }
  const word = squeeze(slug);
  const [finding] = listFiles()
    .filter((path) => path.endsWith(".ts") && !path.startsWith("gen/"))
    .map((path) => ({ path, text: readOwn(path) }))
    // Parsing takes long: only what can name it at all.
    .filter(({ text }) => squeeze(text).includes(word))
    .flatMap(({ path, text }) => checkSlugs(parseSource(path, text), [slug]));
  if (finding !== undefined) {
    throw new StartError(
      `${finding}, and code must not. Take another slug; if it is an everyday word, add it to ordinaryWords in test/rules/slug-rules.ts`,
    );
  }
}

function squeeze(text: string): string {
  return text.toLowerCase().replaceAll(/[-_]/g, "");
}

function checkPaths(paths: Iterable<string>): void {
  for (const path of paths) {
    if (existsSync(join(repositoryRoot, path))) throw new StartError(`${path} is there already`);
    const [finding] = checkPath(path);
    if (finding !== undefined) throw new StartError(finding);
  }
}

function render(template: string, names: Names): string {
  const text = readFileSync(join(import.meta.dirname, `${template}.template`), "utf8");
  const today = new Date().toISOString().slice(0, 10);
  const values: Readonly<Record<string, string>> = { ...names, today };
  return text.replace(/\{\{(\w+)\}\}/g, (mark, name: string) => {
    const value = name === "uuid" ? randomUUID() : values[name];
    if (value === undefined) throw new Error(`${template} has an unknown mark ${mark}`);
    return value;
  });
}

/** A registry with one more import and one more entry at the end of its list. */
function register(path: string, importLine: string, list: RegExp, entry: string): string {
  const text = readOwn(path);
  if (!list.test(text)) throw new Error(`${path} has no list to add to`);
  const added = text.replace(list, (found) => `${found}${/,\s*$/.test(found) ? "" : ", "}${entry}`);
  return added.replace(/^import /m, `${importLine}\nimport `);
}

/** A document with one more row in the table whose head begins so. */
function addRow(path: string, head: string, row: string): string {
  const lines = readOwn(path).split("\n");
  const start = lines.findIndex((line) => line.startsWith(head));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith("|"));
  if (start < 0 || end < 0) throw new Error(`${path} has no table that begins with ${head}`);
  return lines.toSpliced(end, 0, row).join("\n");
}

function readOwn(path: string): string {
  return readFileSync(join(repositoryRoot, path), "utf8");
}
