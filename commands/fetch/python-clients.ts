/**
 * The Python packages that tests run as clients: a virtual environment, named after what is asked for. The programs in its
 * bin/ name the place where it was filled, so a module is run by `python -m`.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../../lib/runtime/start-error.ts";
import { cacheFolder, fillFolder, runProgram } from "./kept-folder.ts";

const requirementsFile = new URL("../../test/contract/python/requirements.txt", import.meta.url).pathname;

/** Where the virtual environment is kept: PYTHON_CLIENTS_DIR, else a folder of the user's cache. */
export function pythonClientsFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.PYTHON_CLIENTS_DIR) return env.PYTHON_CLIENTS_DIR;
  const version = createHash("sha256").update(readFileSync(requirementsFile)).digest("hex").slice(0, 12);
  return cacheFolder(`python-clients-${version}`, env);
}

/** The Python that knows the packages, whether it is there or not. */
export function pythonProgram(folder: string): string {
  return join(folder, "bin", "python");
}

/** Installs the packages by pip unless they are there; returns whether it did. Throws StartError. */
export function fetchPythonClients(folder: string, env: NodeJS.ProcessEnv = process.env): boolean {
  const isWhole = () => existsSync(pythonProgram(folder));
  if (isWhole()) return false;
  const problem = run("python3", ["-c", "import ensurepip, venv"], env);
  if (problem !== undefined) throw new StartError("Python 3 with venv (python3-venv) is missing");
  fillFolder(folder, isWhole, (temporary) => {
    const pip = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
    const failure =
      run("python3", ["-m", "venv", temporary], env) ??
      run(pythonProgram(temporary), [...pip, "--requirement", requirementsFile], env);
    if (failure !== undefined) throw new StartError(`the Python clients can't be had:\n${failure}`);
  });
  return true;
}

/** What a program said if it failed or is missing; undefined when it ended well. */
function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const { error, status, stdout, stderr } = runProgram(program, args, { env });
  if (error !== undefined) return error.message;
  return status === 0 ? undefined : `${stdout}${stderr}`.trim();
}
