import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface PackageManifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

const packageFolder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const textName = /^(licen[cs]e|copying|notice)\b/i;

/** The licences of the packages that a bundle is made of, as they bring them along; NOTICE has what they don't. */
export function licencesOf(paths: readonly string[]): string {
  const folders = new Set(paths.flatMap((path) => packageFolder.exec(path.replaceAll("\\", "/"))?.[0] ?? []));
  const entries = [...folders].sort().map((folder) => {
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageManifest;
    const texts = readdirSync(folder).filter((name) => textName.test(name));
    const head = `${manifest.name} ${manifest.version}, ${manifest.license ?? "licence below"}`;
    return [head, ...texts.sort().map((name) => readFileSync(join(folder, name), "utf8").trim())].join(
      "\n\n",
    );
  });
  return `${entries.join(`\n\n${"=".repeat(80)}\n`)}\n`;
}
