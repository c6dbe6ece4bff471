import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";

const reaperProgram = fileURLToPath(new URL("./reaper.ts", import.meta.url));

/** Processes that end with this one, even if this one is killed: see reaper.ts. */
export class KeptProcesses {
  readonly #reaper: ChildProcess = spawn(process.execPath, [reaperProgram], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });

  constructor() {
    const stdin = this.#reaper.stdin as Socket | null;
    stdin?.on("error", () => undefined);
    // Nobody stays for it: the end of this process is what it waits for.
    stdin?.unref();
    this.#reaper.unref();
  }

  /** From its start until `ended` settles. */
  keep(pid: number, ended: Promise<unknown>): void {
    this.#reaper.stdin?.write(`+${pid}\n`);
    const release = () => void this.#reaper.stdin?.write(`-${pid}\n`);
    ended.then(release, release);
  }

  /** Kills what is still kept. */
  close(): void {
    this.#reaper.stdin?.end();
  }
}
