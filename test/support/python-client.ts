import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import type { TestContext } from "vitest";
import { pythonClientsFolder, pythonProgram } from "../../commands/python-clients.ts";

const scripts = new URL("../contract/python/", import.meta.url).pathname;
const unavailable = "the Python clients are missing: npm run python:fetch";

/** Skips a test where the Python clients were not fetched; with REQUIRE_SERVICES=1, as in CI, fails it. */
export function needPythonClients(context: TestContext): void {
  if (existsSync(pythonProgram(pythonClientsFolder()))) return;
  if (process.env.REQUIRE_SERVICES === "1") throw new Error(unavailable);
  context.skip(unavailable);
}

/** What a script of `test/contract/python` gets as JSON on stdin. */
export interface PythonInput {
  /** Base URL that the client is given. */
  readonly baseUrl: string;
  readonly [name: string]: unknown;
}

/**
 * Runs `test/contract/python/<script>` and returns the JSON that it prints, a trace back on stderr as the error. It gets
 * nothing of this process's environment, and goes to no proxy.
 */
export function runPythonClient<T>(script: string, input: PythonInput): Promise<T> {
  const env = {
    LITELLM_LOCAL_MODEL_COST_MAP: "True", // or it fetches a list of prices when it is imported
    PYTHONDONTWRITEBYTECODE: "1",
  };
  return new Promise((resolve, reject) => {
    const program = pythonProgram(pythonClientsFolder());
    const options = { env, timeout: 120_000, maxBuffer: 64 << 20 };
    const child = execFile(program, [`${scripts}${script}`], options, (thrown, out, error) => {
      if (thrown !== null) return reject(new Error(`${script} failed:\n${error}${out}`, { cause: thrown }));
      resolve(JSON.parse(out) as T);
    });
    child.stdin?.end(JSON.stringify(input));
  });
}
