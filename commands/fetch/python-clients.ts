/**
 * The Python packages that tests run as clients: a virtual environment, in a folder outside of the repository that is
 * named after what is asked for.
 *
 * - A folder that exists under its final name is whole: it is filled under another name and then renamed. The programs
 *   in its bin/ name the other place, so a module is run by `python -m`.
 */
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const requirementsFile = new URL("../../test/contract/python/requirements.txt", import.meta.url).pathname;

/** Something that the machine lacks; the message says in one line what to do. */
export class PythonFetchError extends Error {
  override readonly name = "PythonFetchError";
}

/** Where the virtual environment is kept: PYTHON_CLIENTS_DIR, else a folder of the user's cache. */
export function pythonClientsFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.PYTHON_CLIENTS_DIR) return env.PYTHON_CLIENTS_DIR;
  const version = createHash("sha256").update(readFileSync(requirementsFile)).digest("hex").slice(0, 12);
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "media-gateway", `python-clients-${version}`);
}

/** The Python that knows the packages, whether it is there or not. */
export function pythonProgram(folder: string): string {
  return join(folder, "bin", "python");
}

/** Installs the packages by pip unless they are there; returns whether it did. Throws PythonFetchError. */
export function fetchPythonClients(folder: string, env: NodeJS.ProcessEnv = process.env): boolean {
  if (existsSync(pythonProgram(folder))) return false;
  const problem = run("python3", ["-c", "import ensurepip, venv"], env);
  if (problem !== undefined) throw new PythonFetchError("Python 3 with venv (python3-venv) is missing");
  mkdirSync(dirname(folder), { recursive: true });
  const temporary = `${folder}.${randomBytes(6).toString("hex")}`;
  try {
    const pip = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
    const failure =
      run("python3", ["-m", "venv", temporary], env) ??
      run(pythonProgram(temporary), [...pip, "--requirement", requirementsFile], env);
    if (failure !== undefined) throw new PythonFetchError(`the Python clients can't be had:\n${failure}`);
    putInPlace(temporary, folder);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return true;
}

/** What a program said if it failed or is missing; undefined when it ended well. */
function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const { error, status, stdout, stderr } = spawnSync(program, args, {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (error !== undefined) return error.message;
  return status === 0 ? undefined : `${stdout}${stderr}`.trim();
}

/** Another fetch may have put its own there in the meantime, which is as good. */
function putInPlace(temporary: string, folder: string): void {
  try {
    renameSync(temporary, folder);
  } catch (thrown) {
    if (!existsSync(pythonProgram(folder))) throw thrown;
  }
}
