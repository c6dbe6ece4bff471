/**
 * The programs and schemas that the manifests are checked with. Everything comes through the ordinary clients of npm, PyPI
 * and Go, which compare what they get with its sum.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../../lib/runtime/start-error.ts";
import { cacheFolder, fillFolder, runProgram } from "../fetch/kept-folder.ts";

/** What a tool is fetched with. */
export interface FetchPlace {
  /** An empty folder, which becomes the tool's own. */
  readonly folder: string;
  /** Path of another tool, which was fetched before. */
  pathOf(name: string): string;
  /** Runs a program and returns what it printed. Throws StartError when it is missing, fails or takes too long. */
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
  return env.DEPLOY_TOOLS_DIR || cacheFolder("deploy-tools", env);
}

/** The path of a tool, whether it is there or not. */
export function toolPath(tool: DeployTool, env?: NodeJS.ProcessEnv): string {
  return join(toolFolder(tool, env), tool.path);
}

/** Those of the tools that have not been fetched. */
export function missingTools(tools: readonly DeployTool[], env?: NodeJS.ProcessEnv): DeployTool[] {
  return tools.filter((tool) => !existsSync(toolFolder(tool, env)));
}

/** Fetches a tool; `tools` has those that it is made with, fetched before. Throws StartError. */
export function fetchTool(
  tool: DeployTool,
  tools: readonly DeployTool[],
  env: NodeJS.ProcessEnv = process.env,
): void {
  const folder = toolFolder(tool, env);
  fillFolder(
    folder,
    () => existsSync(folder),
    (temporary) => {
      mkdirSync(temporary);
      tool.fetch({
        folder: temporary,
        pathOf(name) {
          const other = tools.find((candidate) => candidate.name === name);
          if (other === undefined) throw new TypeError(`no tool ${name}`);
          return toolPath(other, env);
        },
        run: (program, args, options) => runForFetch(program, args, env, options),
      });
    },
  );
}

function toolFolder({ name, version }: DeployTool, env?: NodeJS.ProcessEnv): string {
  return join(deployToolsFolder(env), `${name}-${version}`);
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
  if (result.error !== undefined) throw new StartError(`${program} is missing or does not end`);
  if (result.status !== 0) {
    throw new StartError(`${program} ${args.slice(0, 3).join(" ")} … failed:\n${result.stderr}`);
  }
  return result.stdout;
}
