import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** How a file's bytes may be sent, best first. */
export type ContentCoding = "br" | "gzip";

/** One file of the console, in memory. */
export interface ConsoleFile {
  /** Its address at the root: `/` or `/console/<name>`. */
  readonly path: string;
  readonly contentType: string;
  readonly bytes: Buffer;
  /** Its compressed forms, as far as the build made any. */
  readonly compressed: Readonly<Partial<Record<ContentCoding, Buffer>>>;
  readonly etag: string;
}

/** Where the build puts the console. */
const consoleDirectory = new URL("../../console/dist/", import.meta.url);

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
const suffixes = { br: ".br", gzip: ".gz" } as const;

/** The console that a gateway serves: none when it is off or was not built. */
export function readConsoleOf({
  CONSOLE,
}: {
  CONSOLE: "on" | "off";
}): Promise<readonly ConsoleFile[] | undefined> {
  return CONSOLE === "on" ? readConsole(fileURLToPath(consoleDirectory)) : Promise.resolve(undefined);
}

/**
 * Reads the console that was built, all of it: files that a later build replaces are still served to pages that are open.
 * Undefined where there is none.
 */
export async function readConsole(directory: string): Promise<readonly ConsoleFile[] | undefined> {
  const index = await readFileOf(directory, "index.html", "/");
  if (index === undefined) return undefined;
  const names = await readdir(join(directory, "console"));
  const assets = names.map((name) => readFileOf(directory, join("console", name), `/console/${name}`));
  return [index, ...(await Promise.all(assets)).filter((file) => file !== undefined)];
}

/** Undefined for what is not there and for what is no file of its own, such as a compressed form. */
async function readFileOf(directory: string, name: string, path: string): Promise<ConsoleFile | undefined> {
  const contentType = contentTypes[extname(name)];
  const bytes = await readIfThere(join(directory, name));
  if (contentType === undefined || bytes === undefined) return undefined;
  const [br, gzip] = await Promise.all(
    [suffixes.br, suffixes.gzip].map((suffix) => readIfThere(join(directory, name + suffix))),
  );
  const compressed = { ...(br && { br }), ...(gzip && { gzip }) };
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  return { path, contentType, bytes, compressed, etag };
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}
