/**
 * Owns the bundle: one module for each entry point, pieces that several of them load, and the files that they read.
 *
 * 1. A package among `dependencies` of package.json is imported when the program runs; every other one is bundled. So
 *    what is bundled is a devDependency, and an installation of the bundle needs little else.
 * 2. All files lie in one folder, so that each finds every other one beside it.
 * 3. Names and lines stay as they are. Source maps lie beside, without the sources' text.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { StartError } from "../../lib/runtime/start-error.ts";
import { bundleName, entryPoints } from "./entry-points.ts";
import { inputsOf } from "./inputs.ts";
import { licencesOf } from "./licences.ts";
import { sourceUrls } from "./source-urls.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What packages look for and do without. */
const absentPackages = ["pg-native", "@node-rs/xxhash"];

/** Bundles the entry points into dist/, in the place of what was there; says what there is now. */
export async function buildCode(): Promise<string> {
  const begunMs = Date.now();
  const [folder, made] = [join(root, "dist"), join(root, ".dist.new")];
  rmSync(made, { recursive: true, force: true });
  mkdirSync(made);
  const { chunks, moduleIds } = await bundle(made);
  checkImports(chunks);
  writeFileSync(join(made, "THIRD-PARTY-LICENCES"), licencesOf(moduleIds));
  writeFileSync(join(made, "inputs.json"), JSON.stringify(inputsOf(root, moduleIds, begunMs)));
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
  const bytes = chunks.reduce((sum, { code }) => sum + code.length, 0);
  const seconds = ((Date.now() - begunMs) / 1000).toFixed(1);
  return `${chunks.length} files, ${(bytes / 2 ** 20).toFixed(1)} MiB, in ${seconds} s`;
}

async function bundle(folder: string) {
  const urls = sourceUrls(root);
  const moduleIds: string[] = [];
  const listing: Plugin = {
    name: "list-modules",
    buildEnd() {
      moduleIds.push(...this.getModuleIds());
    },
  };
  await using build = await rolldown({
    cwd: root,
    platform: "node",
    input: Object.fromEntries(
      entryPoints.map((path) => [bundleName(path, "").slice(0, -1), join(root, path)]),
    ),
    external: [...dependencies(), ...absentPackages].flatMap((name) => [name, new RegExp(`^${name}/`)]),
    plugins: [urls.plugin, listing],
    onLog(_level, { message, code }) {
      if (code !== "EVAL") throw new StartError(message);
    },
  });
  const { output } = await build.write({
    dir: folder,
    format: "esm",
    sourcemap: true,
    sourcemapExcludeSources: true, // 3.
    comments: { legal: true, annotation: false, jsdoc: false },
    // 2.
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    assetFileNames: "[name]-[hash][extname]",
  });
  return {
    chunks: output.filter((file) => file.type === "chunk"),
    moduleIds: [...moduleIds, ...urls.files],
  };
}

/** The packages that are installed beside the bundle. */
function dependencies(): readonly string[] {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: object };
  return Object.keys(manifest.dependencies);
}

/** Throws StartError when the bundle needs what is not installed with it. */
function checkImports(chunks: readonly OutputChunk[]): void {
  const files = new Set(chunks.map(({ fileName }) => fileName));
  const known = [...dependencies(), ...absentPackages];
  for (const { fileName, imports, dynamicImports } of chunks) {
    for (const name of [...imports, ...dynamicImports]) {
      const isKnown = known.some((each) => name === each || name.startsWith(`${each}/`));
      if (!files.has(name) && !isBuiltin(name) && !isKnown)
        throw new StartError(`${fileName} imports ${name}, which is no dependency`);
    }
  }
}
