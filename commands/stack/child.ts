import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { isAbsolute } from "node:path";
import { createInterface } from "node:readline";
import { programFile } from "../build/entry-points.ts";

/** A process of ours, run as an operator would. */
export interface Child {
  readonly pid: number;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  /** Lines of stdout and stderr so far, in order; the newest ones where `keptLines` says how many. */
  readonly lines: readonly string[];
  /** The first line, past or future, that `test` accepts. Rejects when the process ends before. */
  line(test: (line: string) => boolean): Promise<string>;
  /** The `port` of the log line that says `listening` with this name; see `logListening` of each process. */
  listeningPort(what: string): Promise<number>;
  /** SIGTERM, then waits for the end. */
  stop(): Promise<number | string>;
  /** SIGKILL, then waits for the end. */
  kill(): Promise<void>;
}

/** How to start a child. */
export interface ChildOptions {
  /** Replaces the environment but for what inheritedEnvironment says. */
  env?: Record<string, string>;
  args?: readonly string[];
  cwd?: string;
  uid?: number;
  gid?: number;
  /** Out of reach of the signals that a terminal sends to this process and its children. */
  detached?: boolean;
  /** How many lines are kept; all unless given. */
  keptLines?: number;
  /** Hears every line. */
  onLine?: (line: string) => void;
}

/** What every child has of this process's environment: where programs, its home, its files and compiled code are. */
export function inheritedEnvironment(): Record<string, string> {
  const names = ["PATH", "HOME", "TMPDIR", "NODE_COMPILE_CACHE"];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Starts an entry point, named by its path from the root, with this Node: bundled where this code is; or any file. */
export function startChild(script: string, options: ChildOptions = {}): Child {
  const { cwd, uid, gid, detached } = options;
  const file = isAbsolute(script) ? script : programFile(script);
  const child = spawn(process.execPath, [file, ...(options.args ?? [])], {
    env: { ...inheritedEnvironment(), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    ...(detached === undefined ? {} : { detached }),
  });
  return new RunningChild(script, child, options);
}

/** Runs a command of an operator to its end. Throws with what it printed when it fails. */
export async function runCommand(
  script: string,
  env: Record<string, string>,
  options: Omit<ChildOptions, "env"> = {},
): Promise<void> {
  const child = startChild(script, { ...options, env });
  if ((await child.exited) !== 0) throw new Error(`${script} failed:\n${child.lines.join("\n")}`);
}

class RunningChild implements Child {
  readonly lines: string[] = [];
  readonly exited: Promise<number | string>;
  readonly #script: string;
  readonly #child: ChildProcess;
  readonly #options: ChildOptions;
  readonly #waiting = new Set<() => void>();
  #ended = false;

  constructor(script: string, child: ChildProcess, options: ChildOptions) {
    this.#script = script;
    this.#child = child;
    this.#options = options;
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on("line", (line) => this.#hear(line));
    }
    this.exited = once(child, "close").then(([code, signal]) => {
      this.#ended = true;
      this.#wake();
      return (code as number | null) ?? (signal as string);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  line(test: (line: string) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const found = this.lines.find(test);
        if (found === undefined && !this.#ended) return;
        this.#waiting.delete(check);
        if (found !== undefined) resolve(found);
        else reject(new Error(`${this.#script} ended too early:\n${this.lines.slice(-20).join("\n")}`));
      };
      this.#waiting.add(check);
      check();
    });
  }

  async listeningPort(what: string): Promise<number> {
    const found = await this.line(
      (text) => text.includes('"listening"') && text.includes(`"what":"${what}"`),
    );
    return (JSON.parse(found) as { port: number }).port;
  }

  stop(): Promise<number | string> {
    this.#child.kill("SIGTERM");
    return this.exited;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.exited;
  }

  #hear(line: string): void {
    const { keptLines = Number.POSITIVE_INFINITY, onLine } = this.#options;
    this.lines.push(line);
    if (this.lines.length > keptLines) this.lines.shift();
    onLine?.(line);
    this.#wake();
  }

  #wake(): void {
    for (const check of [...this.#waiting]) check();
  }
}
