import { execFile } from "node:child_process";
import { nouns } from "../../../commands/cli/nouns.ts";
import type { Terminal } from "../../../commands/cli/output.ts";
import { execute } from "../../../commands/cli/program.ts";
import { inheritedEnvironment } from "../../../commands/stack/child.ts";

/** What came of a command line. */
export interface CommandLineResult {
  readonly code: unknown;
  readonly out: string;
  readonly error: string;
}

interface CommandLineOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
  /** Its path from the root; `media-gateway` itself unless given. */
  readonly script?: string;
}

/** Hears what is printed. */
export class HeardTerminal implements Terminal {
  heard = "";
  errors = "";
  readonly #stdin: string;

  constructor(stdin = "") {
    this.#stdin = stdin;
  }

  out(text: string): void {
    this.heard += text;
  }

  error(text: string): void {
    this.errors += text;
  }

  async read(): Promise<string> {
    return this.#stdin;
  }
}

/** Does what `media-gateway` would with these words, in this process. */
export async function commandHere(
  words: readonly string[],
  { env = {}, stdin = "" }: Pick<CommandLineOptions, "env" | "stdin"> = {},
): Promise<CommandLineResult> {
  const heard = new HeardTerminal(stdin);
  const terminal: Terminal = {
    out: (text) => heard.out(text),
    error: (text) => heard.error(text),
    read: () => heard.read(),
  };
  const code = await execute(nouns, words, { env, terminal });
  return { code, out: heard.heard, error: heard.errors };
}

const root = new URL("../../../", import.meta.url);

/** Runs `media-gateway` as a process of its own, with its words. */
export function commandLine(
  words: readonly string[],
  { env = {}, stdin = "", script = "commands/media-gateway.ts" }: CommandLineOptions = {},
): Promise<CommandLineResult> {
  const path = new URL(script, root).pathname;
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [path, ...words],
      { env: { ...inheritedEnvironment(), ...env } },
      (thrown, out, error) => resolve({ code: thrown?.code ?? 0, out, error }),
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(stdin);
  });
}
