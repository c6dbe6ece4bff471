/**
 * The processes of a stack: so many replicas of each service, each service behind a balancer of its own.
 *
 * - A replica is started on a port of the system's choice, counts as started once it says that it is ready, and stays
 *   known to its balancer until it has ended: while it drains, the balancer hears so from the replica itself.
 * - A replica that ends though nobody stopped it is started again after a pause, each twice as long as the one before
 *   until it has lived for longer than the longest. One that can't be started the first time is a failure of the stack.
 */
import { setTimeout as delay } from "node:timers/promises";
import { RetryPause } from "../../lib/events/retry-pause.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import { type Child, startChild } from "./child.ts";
import type { KeptProcesses } from "./kept-processes.ts";
import { listensFor, type ProcessName, processNames, processTiers, scriptOf } from "./processes.ts";
import { type Balancer, startBalancer } from "./tcp-balancer.ts";

/** One process of a stack. */
export interface Replica {
  readonly name: string;
  readonly service: ProcessName;
  /** The process that has the name now, or had it last. */
  readonly child: Child;
}

/** How a replica comes back that has died. */
interface Revival {
  readonly pause: RetryPause;
  /** Ends the tries. */
  readonly leaving: AbortController;
}

interface ReplicasOptions {
  readonly count: number;
  /** Whole environment of a service's processes. */
  environmentOf(service: ProcessName): Record<string, string>;
  /** Hears every line of every process. */
  onLine(name: string, line: string): void;
  /** Hears which process has died, and which serves again. */
  onNote(note: string): void;
  readonly kept: KeptProcesses;
  readonly log: Log;
}

const host = "127.0.0.1";
const keptLines = 50;
/** Before a process that has died is started again, milliseconds. */
const firstPauseMs = 500;
const longestPauseMs = 30_000;

/** Opens a port for each service, 0 for one of the system's choice; nothing is behind them yet. */
export async function openBalancers(
  ports: Readonly<Record<ProcessName, number>>,
): Promise<Readonly<Record<ProcessName, Balancer>>> {
  const opened: [ProcessName, Balancer][] = [];
  try {
    for (const service of processNames) {
      opened.push([service, await startBalancer({ host, port: ports[service] })]);
    }
  } catch (thrown) {
    await Promise.all(opened.map(([, balancer]) => balancer.close()));
    throw thrown;
  }
  return Object.fromEntries(opened) as Record<ProcessName, Balancer>;
}

/** All processes of a stack. */
export class StackReplicas {
  readonly #balancers: Readonly<Record<ProcessName, Balancer>>;
  readonly #options: ReplicasOptions;
  readonly #replicas = new Map<string, Replica & { readonly revival: Revival }>();
  readonly #stopping = new WeakSet<Child>();
  readonly #ending = new AbortController();

  constructor(balancers: Readonly<Record<ProcessName, Balancer>>, options: ReplicasOptions) {
    this.#balancers = balancers;
    this.#options = options;
  }

  get all(): readonly Replica[] {
    return [...this.#replicas.values()];
  }

  /** How many connections were refused by a process that was ready a moment before. */
  get refused(): number {
    return Object.values(this.#balancers).reduce((sum, balancer) => sum + balancer.refused, 0);
  }

  /** Starts every service, those that others need first. Throws StartError when a process ends before it is ready. */
  async start(): Promise<void> {
    for (const tier of processTiers) {
      await Promise.all(
        tier.flatMap((service) => this.#names(service).map((name) => this.#start(service, name))),
      );
    }
  }

  /** Lets a replica drain and end, and starts another in its place; resolves with the exit code once that is ready. */
  async restart(name: string): Promise<number | string> {
    const { service, child, revival } = this.#find(name);
    revival.leaving.abort();
    const code = await this.#stop(child);
    await this.#start(service, name);
    return code;
  }

  /** SIGKILL, as if it had died by itself. */
  async kill(name: string): Promise<void> {
    await this.#find(name).child.kill();
  }

  /** Lets everything drain and end, those that others need last. Names each that did not end with 0. */
  async stop(): Promise<void> {
    this.#ending.abort();
    for (const tier of processTiers.toReversed()) {
      await Promise.all(
        this.all
          .filter(({ service }) => tier.includes(service))
          .map(async ({ name, child }) => {
            const code = await this.#stop(child);
            if (code !== 0) this.#options.log.warn({ name, code }, "a process did not end well");
          }),
      );
    }
  }

  /** SIGKILL for all. */
  killAll(): void {
    this.#ending.abort();
    for (const { child } of this.all) {
      this.#stopping.add(child);
      void child.kill();
    }
  }

  #names(service: ProcessName): string[] {
    const { count } = this.#options;
    return count === 1 ? [service] : Array.from({ length: count }, (_, index) => `${service}-${index + 1}`);
  }

  /** Throws StartError when it ends before it is ready; when it does so later, it is started again. */
  async #start(service: ProcessName, name: string, revival = newRevival()): Promise<void> {
    const { kept, environmentOf, onLine } = this.#options;
    const child = startChild(scriptOf(service), {
      env: environmentOf(service),
      detached: true,
      keptLines,
      onLine: (line) => onLine(name, line),
    });
    kept.keep(child.pid, child.exited);
    const replica = { name, service, child, revival };
    this.#replicas.set(name, replica);
    const port = await child.listeningPort(listensFor(service)).catch(() => undefined);
    const ended = child.exited.then((code) => {
      throw new StartError(`${name} ended (${describe(code, child)}) before it was ready`);
    });
    if (port === undefined) return ended;
    const balancer = this.#balancers[service];
    balancer.add(port);
    void child.exited.then(() => balancer.remove(port));
    await Promise.race([balancer.settled(port, true), ended]);
    const readyMs = performance.now();
    void child.exited.then((code) => {
      if (performance.now() - readyMs > longestPauseMs) revival.pause.reset();
      if (!this.#stopping.has(child))
        void this.#revive(replica, revival, `${name} ended by itself (${describe(code, child)})`);
    });
  }

  /** Tries to start a process that has died until it is ready, or is stopped. */
  async #revive({ name, service }: Replica, revival: Revival, death: string): Promise<void> {
    const { onNote } = this.#options;
    const signal = AbortSignal.any([this.#ending.signal, revival.leaving.signal]);
    for (let reason = death; !signal.aborted; ) {
      const pauseMs = revival.pause.next();
      onNote(`${reason}; starting it again in ${pauseMs / 1000} s`);
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.#start(service, name, revival);
        onNote(`${name} serves again (process ${this.#find(name).child.pid})`);
        return;
      } catch (thrown) {
        reason = thrown instanceof Error ? thrown.message : String(thrown);
      }
    }
  }

  #stop(child: Child): Promise<number | string> {
    this.#stopping.add(child);
    return child.stop();
  }

  #find(name: string) {
    const found = this.#replicas.get(name);
    if (found === undefined) throw new Error(`there is no process ${name}`);
    return found;
  }
}

function newRevival(): Revival {
  return { pause: new RetryPause(firstPauseMs, longestPauseMs), leaving: new AbortController() };
}

/** The exit code and the last words, or the signal. */
function describe(code: number | string, { lines }: Child): string {
  if (typeof code === "string") return code;
  return `exit code ${code}${lines.length === 0 ? "" : `: ${lines.at(-1)}`}`;
}
