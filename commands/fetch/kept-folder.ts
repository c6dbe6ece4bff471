/**
 * What comes from elsewhere and is kept outside of the repository: each in a folder that is named after its version.
 *
 * A folder that exists under its final name is whole: it is filled under another name and then renamed.
 */
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** A folder of the user's cache. */
export function cacheFolder(name: string, env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "media-gateway", name);
}

/** Fills a folder that is not whole. Another may do so meanwhile, which is as good. Throws what `fill` throws. */
export function fillFolder(folder: string, isWhole: () => boolean, fill: (temporary: string) => void): void {
  const temporary = `${folder}.${randomBytes(6).toString("hex")}`;
  mkdirSync(dirname(folder), { recursive: true });
  try {
    fill(temporary);
    if (!isWhole()) rmSync(folder, { recursive: true, force: true });
    renameSync(temporary, folder);
  } catch (thrown) {
    if (!isWhole()) throw thrown;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Runs a program to its end without a terminal; at most `timeoutMs`, after which `error` is set. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string; timeoutMs?: number } = {},
): SpawnSyncReturns<string> {
  const { timeoutMs: timeout, input = "", ...rest } = options;
  return spawnSync(program, args, { ...rest, input, encoding: "utf8", timeout, maxBuffer: 64 << 20 });
}
