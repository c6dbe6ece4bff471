/**
 * The programs and schemas that the manifests are checked with: each in a folder of its own, outside of the repository,
 * named after its version.
 *
 * - A folder that exists under its final name is whole: it is filled under another name and then renamed.
 * - Everything comes through the ordinary clients of npm, PyPI and Go, which compare what they get with its sum.
 */
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Something that the machine lacks, or a check that can't be made; the message says in one line what to do. */
export class DeployToolError extends Error {
  override readonly name = "DeployToolError";
}

/** What a tool is fetched with. */
export interface FetchPlace {
  /** An empty folder, which becomes the tool's own. */
  readonly folder: string;
  /** Path of another tool, which was fetched before. */
  pathOf(name: string): string;
  /** Runs a program and returns what it printed. Throws DeployToolError when it is missing, fails or takes too long. */
  run(program: string, args: readonly string[], options?: RunOptions): string;
}

interface RunOptions {
  readonly cwd?: string;
  /** Variables besides those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A program, or a folder of schemas. */
export interface DeployTool {
  readonly name: string;
  readonly version: string;
  /** What of its folder is used: the program, or the folder of schemas. */
  readonly path: string;
  fetch(place: FetchPlace): void;
}

/** Longest time that one program may take while something is fetched; a build of the API server takes the most. */
const fetchTimeoutMs = 3_600_000;

/** Where the tools are kept: DEPLOY_TOOLS_DIR, else a folder of the user's cache. */
export function deployToolsFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.DEPLOY_TOOLS_DIR) return env.DEPLOY_TOOLS_DIR;
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "media-gateway", "deploy-tools");
}

/** The path of a tool, whether it is there or not. */
export function toolPath(tool: DeployTool, env?: NodeJS.ProcessEnv): string {
  return join(toolFolder(tool, env), tool.path);
}

/** Those of the tools that have not been fetched. */
export function missingTools(tools: readonly DeployTool[], env?: NodeJS.ProcessEnv): DeployTool[] {
  return tools.filter((tool) => !existsSync(toolFolder(tool, env)));
}

/** Fetches a tool; `tools` has those that it is made with, fetched before. Throws DeployToolError. */
export function fetchTool(
  tool: DeployTool,
  tools: readonly DeployTool[],
  env: NodeJS.ProcessEnv = process.env,
): void {
  const temporary = join(deployToolsFolder(env), `.${tool.name}.${randomBytes(6).toString("hex")}`);
  mkdirSync(temporary, { recursive: true });
  try {
    tool.fetch({
      folder: temporary,
      pathOf(name) {
        const other = tools.find((candidate) => candidate.name === name);
        if (other === undefined) throw new TypeError(`no tool ${name}`);
        return toolPath(other, env);
      },
      run: (program, args, options) => runForFetch(program, args, env, options),
    });
    putInPlace(temporary, toolFolder(tool, env));
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function toolFolder({ name, version }: DeployTool, env?: NodeJS.ProcessEnv): string {
  return join(deployToolsFolder(env), `${name}-${version}`);
}

/** Another fetch may have put its own there in the meantime, which is as good. */
function putInPlace(temporary: string, folder: string): void {
  try {
    renameSync(temporary, folder);
  } catch (thrown) {
    if (!existsSync(folder)) throw thrown;
  }
}

function runForFetch(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { cwd, env: more }: RunOptions = {},
): string {
  const result = runProgram(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...env, ...more },
    timeoutMs: fetchTimeoutMs,
  });
  if (result.error !== undefined) throw new DeployToolError(`${program} is missing or does not end`);
  if (result.status !== 0) {
    throw new DeployToolError(`${program} ${args.slice(0, 3).join(" ")} … failed:\n${result.stderr}`);
  }
  return result.stdout;
}

/** Runs a program to its end without a terminal; at most `timeoutMs`, after which `error` is set. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string; timeoutMs: number },
): SpawnSyncReturns<string> {
  const { timeoutMs, input = "", ...rest } = options;
  return spawnSync(program, args, {
    ...rest,
    input,
    encoding: "utf8",
    timeout: timeoutMs,
    maxBuffer: 64 << 20,
  });
}
