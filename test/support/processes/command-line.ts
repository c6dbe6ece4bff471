import { execFile } from "node:child_process";
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
