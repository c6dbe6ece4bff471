import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import type { TestContext } from "vitest";
import { pythonClientsFolder, pythonProgram } from "../../commands/fetch/python-clients.ts";

const scripts = new URL("./python/", import.meta.url).pathname;
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

/** It gets nothing else of this process's environment, and so no proxy. */
const env = {
  LITELLM_LOCAL_MODEL_COST_MAP: "True", // or it fetches a list of prices when it is imported
  PYTHONDONTWRITEBYTECODE: "1",
};

/** Runs `test/contract/python/<script>` and returns the JSON that it prints; rejects with its trace back. */
export function runPythonClient<T>(script: string, input: PythonInput): Promise<T> {
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

/** A script that answers each line of JSON with one. */
export interface PythonSession {
  /** One question at a time. Rejects when the script has ended. */
  ask(question: object): Promise<unknown>;
  close(): Promise<void>;
}

/** Starts `test/contract/python/<script>`, which ends when its stdin does. */
export function openPythonClient(script: string): PythonSession {
  const program = pythonProgram(pythonClientsFolder());
  const child = spawn(program, ["-u", `${scripts}${script}`], { env, stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  // What it says about itself on stderr tells more than a broken pipe.
  child.stdin.on("error", () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(question) {
      child.stdin.write(`${JSON.stringify(question)}\n`);
      const line = await lines.next();
      if (line.done === true) throw new Error(`${script} ended`);
      return JSON.parse(line.value);
    },
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
