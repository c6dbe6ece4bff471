/**
 * One run of the PostgreSQL server as a child of this process.
 *
 * 1. Before each launch what an earlier owner left running is stopped; where both run into each other all the same (a
 *    server that was launched but had not yet said so), PostgreSQL lets one of them have the cluster, and we try again.
 * 2. The child is its own session: a Ctrl-C in the terminal reaches this process alone, which stops the server last.
 * 3. The child outlives this process only when this one is killed: any other end shuts it down, stopped or not.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { type PostgresBinaries, serverProcess } from "./postgres-binaries.ts";
import type { ServerHome } from "./postgres-home.ts";
import { stopOrphan } from "./postgres-orphan.ts";

/** What it takes to run the server on a cluster. */
export interface ServerOptions {
  readonly home: ServerHome;
  readonly binaries: PostgresBinaries;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** False gives up durability for speed, for tests. */
  readonly durable: boolean;
  /** How long a fast shutdown may take before an immediate one. */
  readonly stopTimeoutMs: number;
}

/** Longest recovery after a crash that is waited for. */
const readyTimeoutMs = 600_000;

/** How long a launch is repeated when it fails for a reason that passes. */
const retryMs = 30_000;

/** How long an immediate shutdown may take; PostgreSQL kills its own stuck processes after 5 s. */
const immediateStopMs = 15_000;

const pollMs = 20;

/** Failures that pass: the port was taken meanwhile, or a server or backend without an owner is still going away. */
const passing =
  /could not (bind|create any TCP)|lock file "postmaster.pid" (already exists|is empty)|shared memory block .* still in use/;

/** Starts the server on a free loopback port and returns when it accepts connections. Throws StartError. */
export async function launchServer(options: ServerOptions): Promise<PostgresServer> {
  const patience = AbortSignal.timeout(retryMs);
  for (;;) {
    await stopOrphan(options.home, options.binaries.pgCtl, options.log); // 1.
    const server = new PostgresServer(options, await freePort());
    if (await server.becomesReady()) return server;
    const lines = server.lastLines();
    if (!passing.test(lines) || patience.aborted) throw new StartError(`PostgreSQL did not start: ${lines}`); // 1.
    await delay(100, undefined, { signal: options.signal });
  }
}

/** A server process from launch to end. */
export class PostgresServer {
  readonly port: number;
  /** Settles with the reason when the server has ended though nobody stopped it. */
  readonly exited: Promise<Error>;
  readonly #options: ServerOptions;
  readonly #child: ChildProcess;
  readonly #ended: Promise<string>;
  readonly #lines: string[] = [];
  #stopped: Promise<void> | undefined;

  constructor(options: ServerOptions, port: number) {
    const { home, binaries, durable, log } = options;
    this.port = port;
    this.#options = options;
    const settings = Object.entries({ ...serverSettings(durable), port });
    this.#child = spawn(
      binaries.postgres,
      ["-D", home.cluster, ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`])],
      { ...serverProcess(home.user), cwd: home.path, stdio: ["ignore", "ignore", "pipe"], detached: true }, // 2.
    );
    this.#ended = endOf(this.#child);
    const atExit = () => void this.#child.kill("SIGINT");
    process.once("exit", atExit); // 3.
    this.#ended.then(() => process.off("exit", atExit));
    if (this.#child.stderr !== null) {
      createInterface({ input: this.#child.stderr }).on("line", (line) => {
        this.#lines.push(line);
        if (this.#lines.length > 10) this.#lines.shift();
        log.debug({ line }, "PostgreSQL");
      });
    }
    this.exited = new Promise((resolve) => {
      this.#ended.then((how) => {
        if (this.#stopped === undefined) resolve(new Error(`PostgreSQL ended (${how}): ${this.lastLines()}`));
      });
    });
  }

  /** The newest lines that the server wrote, as one. */
  lastLines(): string {
    return this.#lines.join(" ");
  }

  /** True when the server accepts connections, false when it ended instead. Throws when it does neither, or on abort. */
  async becomesReady(): Promise<boolean> {
    const { home, signal } = this.#options;
    const deadline = AbortSignal.timeout(readyTimeoutMs);
    let running = true;
    this.#ended.then(() => {
      running = false;
    });
    while (running) {
      if (signal.aborted || deadline.aborted) {
        await this.stop();
        signal.throwIfAborted();
        throw new StartError(`PostgreSQL did not become ready: ${this.lastLines()}`);
      }
      if (await this.#reportsReady(home.cluster)) return true;
      await delay(pollMs);
    }
    return false;
  }

  /** Shuts the server down, ending its sessions, and waits for its end. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { home, binaries, log, stopTimeoutMs } = this.#options;
    if (process.platform === "win32") {
      const options = serverProcess(home.user);
      await promisify(execFile)(binaries.pgCtl, ["stop", "-D", home.cluster, "-m", "fast"], options).catch(
        () => undefined,
      );
    } else this.#child.kill("SIGINT");
    if (await this.#endsWithin(stopTimeoutMs)) return;
    log.warn({ stopTimeoutMs }, "PostgreSQL does not shut down in time: immediate shutdown");
    this.#child.kill("SIGQUIT");
    if (await this.#endsWithin(immediateStopMs)) return;
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  async #endsWithin(timeoutMs: number): Promise<boolean> {
    const timer = new AbortController();
    const late = delay(timeoutMs, "late", { signal: timer.signal }).catch(() => "late");
    const first = await Promise.race([this.#ended, late]);
    timer.abort();
    return first !== "late";
  }

  /** The eighth line of `postmaster.pid` is the server's own word on its state (PostgreSQL, pidfile.h). */
  async #reportsReady(cluster: string): Promise<boolean> {
    const text = await readFile(join(cluster, "postmaster.pid"), "utf8").catch(() => "");
    const lines = text.split("\n");
    return Number(lines[0]) === this.#child.pid && lines[7]?.trim() === "ready";
  }
}

/** Settings given at each start, so that no edited file can open the server to others or lose commits. */
function serverSettings(durable: boolean): Record<string, string> {
  return {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "100",
    timezone: "UTC",
    log_timezone: "UTC",
    lc_messages: "C",
    log_destination: "stderr",
    log_line_prefix: "",
    logging_collector: "off",
    log_error_verbosity: "terse",
    log_min_error_statement: "panic",
    password_encryption: "scram-sha-256",
    synchronous_commit: "on",
    fsync: durable ? "on" : "off",
    full_page_writes: durable ? "on" : "off",
    // So that an idle server rests: every commit waits for the disk itself, and a look at each database costs a process.
    wal_writer_delay: "5s",
    autovacuum_naptime: "5min",
    bgwriter_delay: "2s",
    bgwriter_lru_maxpages: "1000",
    max_logical_replication_workers: "0",
  };
}

/** How a child ended, in words, once what it wrote last is read; backends that outlive it are not waited for. */
async function endOf(child: ChildProcess): Promise<string> {
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const how = await new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  await Promise.race([closed, delay(1000, undefined, { ref: false })]);
  return how;
}

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  return port;
}
