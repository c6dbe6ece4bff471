/**
 * `npm run new -- provider <slug>` and `npm run new -- destination <slug>`: writes a provider or a destination type that
 * passes its tests, from the templates in commands/new/. Writes nothing where the name can't be or is taken.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { StartError } from "../lib/runtime/start-error.ts";
import { startFailure } from "../lib/service/process.ts";
import { repositoryRoot } from "../test/rules/source-files.ts";
import { runCommand } from "./command-line.ts";
import { type NewPart, newDestination, newProvider } from "./new/new-part.ts";

const usage = `usage: npm run new -- provider <slug>
       npm run new -- destination <slug>`;

await runCommand(() => {
  const [kind = "", slug, ...more] = process.argv.slice(2);
  const plan = { provider: newProvider, destination: newDestination }[kind];
  if (plan === undefined || slug === undefined || more.length > 0) throw new StartError(usage);
  const part = plan(slug);
  write(part);
  for (const path of part.files.keys()) console.log(path);
  console.log(`\n${part.next}`);
}, startFailure);

function write({ files }: NewPart): void {
  for (const [path, text] of files) {
    mkdirSync(dirname(join(repositoryRoot, path)), { recursive: true });
    writeFileSync(join(repositoryRoot, path), text);
  }
  // Sorts the imports, and breaks lines that the name made too long.
  const sources = [...files.keys()].filter((path) => path.endsWith(".ts"));
  const biome = join(repositoryRoot, "node_modules", ".bin", "biome");
  const { status, stderr } = spawnSync(biome, ["check", "--write", ...sources], {
    cwd: repositoryRoot,
    encoding: "utf8",
  });
  if (status !== 0) throw new StartError(`Biome does not take what was written:\n${stderr}`);
}
