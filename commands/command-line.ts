import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { StartError } from "../lib/runtime/start-error.ts";
import { startFailure } from "../lib/service/process.ts";

/** What a command was called with. Throws StartError where that is not of its options. */
export function readOptions<const O extends ParseArgsOptionsConfig>(options: O) {
  try {
    return parseArgs({ options, strict: true }).values;
  } catch (thrown) {
    throw new StartError(thrown instanceof Error ? thrown.message : "malformed options");
  }
}

/** Does a command's work, which may give an exit code. A failure is told on stderr, and exits with 1. */
export async function runCommand(
  work: () => unknown,
  describe: (thrown: unknown) => string = failureLine,
): Promise<void> {
  try {
    const code = await work();
    if (typeof code === "number") process.exitCode = code;
  } catch (thrown) {
    console.error(describe(thrown));
    // What was given up may still be tried.
    process.exit(1);
  }
}

/** Why a command failed, in one line. */
export function failureLine(thrown: unknown): string {
  return startFailure(thrown).split("\n")[0] ?? "";
}
