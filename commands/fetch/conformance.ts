/**
 * The conformance suite of the Connect protocols, a program in Go that calls a server in every way there is, and its
 * messages, as descriptors. Both come from one Go module, through Go's ordinary client.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "../../lib/runtime/start-error.ts";
import { cacheFolder, fillFolder, runProgram } from "./kept-folder.ts";

const module = "connectrpc.com/conformance";
const version = "1.0.7";
const fetchTimeoutMs = 1_800_000;

/** Where the suite is kept, whether it is there or not. */
export function conformanceFolder(env: NodeJS.ProcessEnv = process.env): string {
  return cacheFolder(`conformance-${version}`, env);
}

/** The program that runs the suite. */
export function conformanceProgram(folder: string): string {
  return join(folder, "connectconformance");
}

/** The descriptors of its service, a FileDescriptorSet. */
export function conformanceDescriptors(folder: string): string {
  return join(folder, "conformance.binpb");
}

/** Fetches the suite unless it is there; returns whether it did. Throws StartError. */
export function fetchConformance(folder: string): boolean {
  const isWhole = () => existsSync(conformanceProgram(folder)) && existsSync(conformanceDescriptors(folder));
  if (isWhole()) return false;
  fillFolder(folder, isWhole, (temporary) => {
    mkdirSync(temporary);
    run("go", ["install", `${module}/cmd/connectconformance@v${version}`], { GOBIN: temporary });
    const { Dir } = JSON.parse(run("go", ["mod", "download", "-json", `${module}@v${version}`])) as {
      Dir: string;
    };
    run("npx", ["buf", "build", join(Dir, "proto"), "--output", conformanceDescriptors(temporary)]);
  });
  return true;
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const result = runProgram(program, args, { env: { ...process.env, ...env }, timeoutMs: fetchTimeoutMs });
  if (result.error !== undefined) throw new StartError(`${program} is missing or does not end`);
  if (result.status !== 0) throw new StartError(`${program} ${args[0]} … failed:\n${result.stderr}`);
  return result.stdout;
}
