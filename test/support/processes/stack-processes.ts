import {
  environmentOf,
  listensFor,
  type ProcessGround,
  type ProcessName,
  processTiers,
  scriptOf,
} from "../../../commands/stack/processes.ts";
import { waitUntil } from "../wait-until.ts";
import { Absences } from "./absences.ts";
import { type Child, startChild } from "./child.ts";

/** Services that belong together: each calls those that it is told of. */
export interface ServicesOptions<S extends ProcessName> {
  readonly services: readonly S[];
  /** A database with its schemas, and keys. */
  readonly ground: Omit<ProcessGround, "urls">;
  /** Added to the environment of every process; without KAFKA_BROKERS there is no broker, and events wait in the database. */
  readonly env: Readonly<Record<string, string>>;
  /** Added to the environment of one. */
  readonly envOf?: Readonly<Partial<Record<ProcessName, Readonly<Record<string, string>>>>>;
  /** Stands behind a service's name in the name of its process. */
  readonly suffix?: string;
}

interface Running {
  readonly service: ProcessName;
  readonly child: Child;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
}

/** The discard port, where nobody listens. */
const noBroker = "127.0.0.1:9";
const restartTimeoutMs = 120_000;

/**
 * Processes of services that a test stops, kills and starts again under their names, each reached at a port of its own
 * with nothing in between, which refuses while its process is away. None outlives the test: see child.ts.
 */
export class StackProcesses {
  /** Of those that were killed. */
  readonly absences = new Absences();
  readonly #running = new Map<string, Running>();
  readonly #started: Child[] = [];

  /** Starts each once those listen that it calls, and resolves with their base URLs. */
  async start<S extends ProcessName>(options: ServicesOptions<S>): Promise<Readonly<Record<S, string>>> {
    const { services, ground, env, envOf = {}, suffix = "" } = options;
    const urls: Partial<Record<ProcessName, string>> = {};
    const start = async (service: ProcessName) => {
      const own = environmentOf(service, { ...ground, urls: { ...urls } });
      const quiet = { DRAIN_DELAY_MS: "0", METRICS_PORT: "off", KAFKA_BROKERS: noBroker };
      const whole = { ...own, ...quiet, ...env, ...envOf[service] };
      urls[service] = `http://127.0.0.1:${await this.#launch(service + suffix, service, whole, 0)}`;
    };
    for (const tier of processTiers) {
      await Promise.all(services.filter((service) => tier.includes(service)).map(start));
    }
    return urls as Record<S, string>;
  }

  /** SIGTERM; resolves with its exit code. */
  stop(name: string): Promise<number | string> {
    return this.child(name).stop();
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(name: string): Promise<void> {
    this.absences.begin(name);
    await this.child(name).kill();
  }

  /** Starts one that has ended again on the port that it had, as it was started last but for what `changes` sets. */
  async restart(name: string, changes: Readonly<Record<string, string>> = {}): Promise<void> {
    const { service, env, port } = this.#find(name);
    // Somebody else may have the port for a moment.
    await waitUntil(() => this.#launch(name, service, { ...env, ...changes }, port), {
      timeoutMs: restartTimeoutMs,
    });
    this.absences.end(name);
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

  /** What all have logged, those that have ended included. */
  lines(): readonly string[] {
    return this.#started.flatMap(({ lines }) => lines);
  }

  /** SIGTERM for all, those first that others don't need. */
  async stopAll(): Promise<void> {
    for (const child of this.#started.toReversed()) await child.stop();
  }

  /** SIGKILL for all. */
  async killAll(): Promise<void> {
    await Promise.all(this.#started.map((child) => child.kill()));
  }

  async #launch(
    name: string,
    service: ProcessName,
    env: Readonly<Record<string, string>>,
    port: number,
  ): Promise<number> {
    const child = startChild(scriptOf(service), { env: { ...env, PORT: String(port) } });
    this.#started.push(child);
    const bound = await child.listeningPort(listensFor(service));
    this.#running.set(name, { service, child, port: bound, env });
    return bound;
  }

  #find(name: string): Running {
    const found = this.#running.get(name);
    if (found === undefined) throw new Error(`${name} was not started`);
    return found;
  }
}
