/**
 * The processes of a stack: so many replicas of each service, each service behind a balancer of its own.
 *
 * - A replica is started on a port of the system's choice, counts as started once it says that it is ready, and stays
 *   known to its balancer until it has ended: while it drains, the balancer hears so from the replica itself.
 * - A replica that ends though nobody stopped it is a failure of the stack.
 */
import type { Log } from "../../lib/runtime/log.ts";
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

interface ReplicasOptions {
  readonly count: number;
  /** Whole environment of a service's processes. */
  environmentOf(service: ProcessName): Record<string, string>;
  /** Hears every line of every process. */
  onLine(name: string, line: string): void;
  readonly kept: KeptProcesses;
  readonly log: Log;
}

const host = "127.0.0.1";
const keptLines = 50;

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
  /** Resolves with a line that says why, when a process has ended that nobody stopped. */
  readonly failed: Promise<string>;
  readonly #balancers: Readonly<Record<ProcessName, Balancer>>;
  readonly #options: ReplicasOptions;
  readonly #replicas = new Map<string, Replica>();
  readonly #stopping = new WeakSet<Child>();
  readonly #fail: (line: string) => void;

  constructor(balancers: Readonly<Record<ProcessName, Balancer>>, options: ReplicasOptions) {
    this.#balancers = balancers;
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.failed = promise;
    this.#fail = resolve;
  }

  get all(): readonly Replica[] {
    return [...this.#replicas.values()];
  }

  /** Starts every service, those that others need first. Rejects when a process ends before it is ready. */
  async start(): Promise<void> {
    for (const tier of processTiers) {
      await Promise.all(
        tier.flatMap((service) => this.#names(service).map((name) => this.#start(service, name))),
      );
    }
  }

  /** Lets a replica drain and end, and starts another in its place; resolves with the exit code once that is ready. */
  async restart(name: string): Promise<number | string> {
    const { service, child } = this.#find(name);
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
    for (const { child } of this.all) {
      this.#stopping.add(child);
      void child.kill();
    }
  }

  #names(service: ProcessName): string[] {
    const { count } = this.#options;
    return count === 1 ? [service] : Array.from({ length: count }, (_, index) => `${service}-${index + 1}`);
  }

  async #start(service: ProcessName, name: string): Promise<void> {
    const { kept, environmentOf, onLine } = this.#options;
    const child = startChild(scriptOf(service), {
      env: environmentOf(service),
      detached: true,
      keptLines,
      onLine: (line) => onLine(name, line),
    });
    kept.keep(child.pid, child.exited);
    this.#replicas.set(name, { name, service, child });
    const port = await child.listeningPort(listensFor(service));
    const balancer = this.#balancers[service];
    balancer.add(port);
    void child.exited.then((code) => {
      balancer.remove(port);
      if (!this.#stopping.has(child))
        this.#fail(`${name} ended by itself (${describe(code)})${lastLine(child)}`);
    });
    const ended = child.exited.then((code) => {
      throw new Error(`${name} ended (${describe(code)}) before it was ready${lastLine(child)}`);
    });
    await Promise.race([balancer.settled(port, true), ended]);
  }

  #stop(child: Child): Promise<number | string> {
    this.#stopping.add(child);
    return child.stop();
  }

  #find(name: string): Replica {
    const found = this.#replicas.get(name);
    if (found === undefined) throw new Error(`there is no process ${name}`);
    return found;
  }
}

function describe(code: number | string): string {
  return typeof code === "number" ? `exit code ${code}` : code;
}

function lastLine({ lines }: Child): string {
  const line = lines.at(-1);
  return line === undefined ? "" : `: ${line}`;
}
