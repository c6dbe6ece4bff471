/**
 * Processes that a test kills and starts again under their names. None outlives the test: see kept-processes.ts.
 */
import { KeptProcesses } from "../../commands/stack/kept-processes.ts";
import { type Child, startChild } from "../support/processes/child.ts";
import { waitUntil } from "../support/wait-until.ts";

/** When something was away, monotonic milliseconds: from before its kill until it could be reached again. */
export interface Absence {
  readonly name: string;
  readonly fromMs: number;
  /** Infinity while it is away. */
  readonly toMs: number;
}

/** Who was away, and when. */
export class Absences {
  #all: readonly Absence[] = [];

  /** Oldest first. */
  get all(): readonly Absence[] {
    return this.#all;
  }

  /** It goes away now. */
  begin(name: string): void {
    this.#all = [...this.#all, { name, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY }];
  }

  /** It can be reached again. */
  end(name: string): void {
    const nowMs = performance.now();
    this.#all = this.#all.map((absence) =>
      absence.name === name ? { ...absence, toMs: Math.min(absence.toMs, nowMs) } : absence,
    );
  }
}

/** How a process is started. */
export interface ProcessStart {
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  /** The `what` of the log line that tells its port. */
  readonly listensFor: "rpc" | "rest";
}

interface Running extends ProcessStart {
  readonly child: Child;
  readonly port: number;
}

const restartTimeoutMs = 120_000;

/** Processes by name. */
export class CrashProcesses {
  readonly #running = new Map<string, Running>();
  readonly #children: { readonly name: string; readonly child: Child }[] = [];
  readonly #kept = new KeptProcesses();
  readonly #absences: Absences;

  constructor(absences: Absences) {
    this.#absences = absences;
  }

  /** Starts a process and resolves with its base URL once it listens. */
  async start(name: string, start: ProcessStart): Promise<string> {
    return `http://127.0.0.1:${await this.#launch(name, start, 0)}`;
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(name: string): Promise<void> {
    this.#absences.begin(name);
    await this.child(name).kill();
  }

  /** Starts a killed process again as it was started first, on the port that it had. */
  async restart(name: string): Promise<void> {
    const { port, ...start } = this.#find(name);
    // Somebody else may have the port for a moment.
    await waitUntil(() => this.#launch(name, start, port), { timeoutMs: restartTimeoutMs });
    this.#absences.end(name);
  }

  /** SIGSTOP: it lives on and does nothing. */
  pause(name: string): void {
    process.kill(this.child(name).pid, "SIGSTOP");
  }

  /** SIGCONT. */
  resume(name: string): void {
    process.kill(this.child(name).pid, "SIGCONT");
  }

  /** The process that has the name now, or had it last. */
  child(name: string): Child {
    return this.#find(name).child;
  }

  /** What all processes have logged, each line behind its process's name. */
  logLines(): readonly string[] {
    return this.#children.flatMap(({ name, child }) => child.lines.map((line) => `${name}: ${line}`));
  }

  /** SIGKILL for all. */
  async close(): Promise<void> {
    await Promise.all(this.#children.map(({ child }) => child.kill()));
    this.#kept.close();
  }

  async #launch(name: string, start: ProcessStart, port: number): Promise<number> {
    const child = startChild(start.script, { env: { ...start.env, PORT: String(port) } });
    this.#children.push({ name, child });
    this.#kept.keep(child.pid, child.exited);
    const bound = await child.listeningPort(start.listensFor);
    this.#running.set(name, { ...start, child, port: bound });
    return bound;
  }

  #find(name: string): Running {
    const found = this.#running.get(name);
    if (found === undefined) throw new Error(`${name} was not started`);
    return found;
  }
}
