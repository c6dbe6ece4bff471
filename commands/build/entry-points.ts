import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

/** Every program that production runs, by its path from the root. */
export const entryPoints: readonly string[] = [
  "standalone/main.ts",
  "gateway/main.ts",
  ...["speech", "image", "account", "usage", "destination"].map((name) => `services/${name}/main.ts`),
  ...[
    "admin",
    "media-gateway",
    "migrate",
    "rebuild-activity",
    "reconcile",
    "replay-dead-letters",
    "stack",
    "topics",
  ].map((name) => `commands/${name}.ts`),
];

/** The file of an entry point within the bundle: `speech.js` of `services/speech/main.ts`, `migrate.js` of a command. */
export function bundleName(path: string, extension = "js"): string {
  const { dir, name } = posix.parse(path);
  return `${name === "main" ? posix.basename(dir) : name}.${extension}`;
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The file to run for a path from the root: of the bundle where this code is bundled itself, or USE_BUNDLE is set. */
export function programFile(path: string): string {
  const isBundled = !import.meta.filename.endsWith(".ts");
  if (!entryPoints.includes(path) || !(isBundled || process.env.USE_BUNDLE)) return join(root, path);
  return join(isBundled ? dirname(import.meta.filename) : join(root, "dist"), bundleName(path));
}
