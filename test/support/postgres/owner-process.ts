import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { endWithFile } from "../processes/leftovers.ts";

/** What the owner process is told. */
export interface OwnerOptions {
  readonly dataDir: string;
  readonly durable?: boolean;
  /** Removes the data directory at the end. */
  readonly temporary?: boolean;
}

/** Another process that runs an embedded PostgreSQL. */
export interface OwnerProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** The database's URL; rejects with the line that the process printed when it could not start. */
  readonly url: Promise<string>;
  /** Lets it shut down and waits for its end. */
  end(): Promise<void>;
}

/** How to run the process: under another user, or from a copy of the sources. */
export interface OwnerPlace {
  readonly uid?: number;
  readonly gid?: number;
  readonly program?: string;
}

const ownProgram = fileURLToPath(new URL("./postgres-owner.ts", import.meta.url));

/** Starts an owner process. It ends when this process does, even if this one is killed. */
export function spawnOwner(
  options: OwnerOptions,
  { program = ownProgram, ...user }: OwnerPlace = {},
): OwnerProcess {
  const child = spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    ...user,
  });
  const ended = once(child, "close");
  const end = async () => {
    child.stdin.end();
    await ended;
  };
  ended.then(endWithFile(end));
  const url = firstLine(child);
  url.catch(() => undefined);
  return {
    child,
    url,
    end,
  };
}

async function firstLine(child: ChildProcessWithoutNullStreams): Promise<string> {
  const failure = text(child.stderr);
  for await (const chunk of child.stdout) return String(chunk).trim();
  throw new Error((await failure).trim());
}
