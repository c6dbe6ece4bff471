import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { Plugin, PluginContext } from "rolldown";
import { bundleName } from "./entry-points.ts";

const holding =
  /import\.meta\.(ROLLUP_FILE_URL_[\w$-]+|filename)|createRequire\(import\.meta\.url\)|new URL\("[^"]+", import\.meta\.url\)/g;

/** The plugin, and the files besides modules that the bundle was made of. */
export interface SourceUrls {
  readonly plugin: Plugin;
  readonly files: readonly string[];
}

/**
 * Keeps what our modules say of files by their own place true in a bundle that lies in a folder of the root:
 *
 * - `new URL("./worker.ts", import.meta.url)` leads to a program of its own, bundled as well;
 * - `new URL("./page.js", import.meta.url)` and `import.meta.resolve("package/file")` lead to a copy of the file;
 * - `new URL("../../catalog", import.meta.url)`, a folder, leads to where it is, or will be.
 *
 * Besides, a module may ask for packages that are not bundled, and for its own file; any other use is refused.
 */
export function sourceUrls(root: string): SourceUrls {
  const files: string[] = [];
  const copyOf = (context: PluginContext, path: string) => {
    files.push(path);
    return context.emitFile({ type: "asset", name: basename(path), source: readFileSync(path) });
  };
  const plugin: Plugin = {
    name: "source-urls",
    transform: {
      filter: { id: { exclude: /node_modules/ }, code: /import\.meta/ },
      handler(code, id) {
        const urlOf = (path: string) => {
          const target = resolve(dirname(id), path);
          if (statSync(target, { throwIfNoEntry: false })?.isFile() !== true) {
            const folder = join("..", relative(root, target), path.endsWith("/") ? "/" : "");
            return `new URL(${JSON.stringify(folder)}, import.meta.url)`;
          }
          const reference = target.endsWith(".ts")
            ? this.emitFile({ type: "chunk", id: target, fileName: bundleName(target) })
            : copyOf(this, target);
          return `new URL(import.meta.ROLLUP_FILE_URL_${reference})`;
        };
        const text = code
          .replaceAll(
            /new URL\(\s*"(\.[^"]*)",\s*import\.meta\.url,?\s*\)/g,
            (all, path: string) => urlOf(path) + "\n".repeat(all.split("\n").length - 1),
          )
          .replaceAll(/import\.meta\.resolve\("([^"]+)"\)/g, (_, specifier: string) => {
            const path = createRequire(id).resolve(specifier);
            return `import.meta.ROLLUP_FILE_URL_${copyOf(this, path)}`;
          });
        if (/import\.meta/.test(text.replaceAll(holding, ""))) {
          this.error(`${relative(root, id)}: a use of import.meta that does not hold in a bundle`);
        }
        return { code: text, map: null };
      },
    },
  };
  return { plugin, files };
}
