/**
 * Spreads connections over the replicas of a service on one machine, as a cluster's Service does.
 *
 * - Whether a replica is ready is asked of its `/readyz`, again and again; one that can't be reached counts as not
 *   ready until it says otherwise. New connections go to ready ones in turn; those that run are left alone.
 * - A connection that a replica refuses goes to another one, as whoever opens connections in a cluster tries again: such
 *   a process has gone before it has said so. Connections that were refused are counted; one that breaks later stays
 *   broken.
 * - While nobody is ready, connections wait for a while, at most so many of them.
 */
import { once } from "node:events";
import { get } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** How a balancer listens and asks. */
export interface BalancerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** How often a replica that is not ready is asked again, milliseconds; 250 unless given. One that is, less often. */
  readonly pollMs?: number;
  /** How long a connection waits for a replica that is ready, milliseconds; 10 s unless given. */
  readonly patienceMs?: number;
}

/** A balancer that runs. Replicas are named by their ports, on the same host. */
export interface Balancer {
  readonly port: number;
  add(target: number): void;
  /** Lets go of a replica that is gone. */
  remove(target: number): void;
  /** Those of the replicas that are ready. */
  readonly ready: readonly number[];
  /** How many connections a replica refused that counted as ready. */
  readonly refused: number;
  /** Resolves when a replica is ready, or is not, as last asked. */
  settled(target: number, isReady: boolean): Promise<void>;
  /** Stops listening and cuts what still runs. */
  close(): Promise<void>;
}

const pollTimeoutMs = 2000;
const maxWaiting = 1000;
/** A replica that goes says so for seconds, and a connection that it refuses goes to another. */
const readyPollFactor = 4;

/** Starts a balancer. Rejects when its port can't be bound. */
export async function startBalancer(options: BalancerOptions): Promise<Balancer> {
  const replicas = new Replicas(options);
  const pairs = new Pairs(options, replicas);
  const listener = createServer({ noDelay: true, allowHalfOpen: true }, (client) => pairs.join(client));
  listener.listen(options.port, options.host);
  try {
    await once(listener, "listening");
  } catch (thrown) {
    replicas.stop();
    throw thrown;
  }
  return {
    port: (listener.address() as AddressInfo).port,
    add: (target) => replicas.add(target),
    remove: (target) => replicas.remove(target),
    get ready() {
      return replicas.ready;
    },
    get refused() {
      return replicas.refused;
    },
    settled: (target, isReady) => replicas.until(() => replicas.ready.includes(target) === isReady),
    async close() {
      const closed = once(listener.close(), "close");
      replicas.stop();
      pairs.cut();
      await closed;
    },
  };
}

/** Which replicas are ready. */
class Replicas {
  readonly #options: BalancerOptions;
  readonly #known = new Map<number, AbortController>();
  readonly #ready = new Set<number>();
  readonly #stopping = new AbortController();
  readonly #changed = new Set<() => void>();
  #turn = 0;
  #refused = 0;

  constructor(options: BalancerOptions) {
    this.#options = options;
  }

  add(target: number): void {
    if (this.#known.has(target)) return;
    const leaving = new AbortController();
    this.#known.set(target, leaving);
    void this.#watch(target, AbortSignal.any([this.#stopping.signal, leaving.signal]));
  }

  remove(target: number): void {
    this.#known.get(target)?.abort();
    this.#known.delete(target);
    this.#set(target, false);
  }

  get ready(): readonly number[] {
    return [...this.#ready];
  }

  /** The next in turn; undefined where none is ready. */
  next(): number | undefined {
    const candidates = this.ready;
    this.#turn += 1;
    return candidates[this.#turn % candidates.length];
  }

  /** Resolves when the condition holds, which is looked at after each change; rejects when its signal gives up. */
  until(condition: () => boolean, giveUp?: AbortSignal): Promise<void> {
    const { signal: stopping } = this.#stopping;
    const signal = giveUp === undefined ? stopping : AbortSignal.any([stopping, giveUp]);
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#changed.delete(check);
        reject(signal.reason);
      };
      const check = () => {
        if (!condition()) return;
        this.#changed.delete(check);
        signal.removeEventListener("abort", stop);
        resolve();
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
      this.#changed.add(check);
      check();
    });
  }

  get refused(): number {
    return this.#refused;
  }

  /** It could not be reached. */
  lost(target: number): void {
    this.#refused += 1;
    this.#set(target, false);
  }

  stop(): void {
    this.#stopping.abort();
  }

  #set(target: number, isReady: boolean): void {
    if (this.#ready.has(target) === isReady) return;
    if (isReady) this.#ready.add(target);
    else this.#ready.delete(target);
    for (const check of [...this.#changed]) check();
  }

  async #watch(target: number, signal: AbortSignal): Promise<void> {
    const { host, pollMs = 250 } = this.#options;
    while (!signal.aborted) {
      const answer = await isReady(host, target, signal);
      if (signal.aborted) return;
      this.#set(target, answer);
      await delay(answer ? pollMs * readyPollFactor : pollMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Connections and what they were joined with. */
class Pairs {
  readonly #options: BalancerOptions;
  readonly #replicas: Replicas;
  readonly #sockets = new Set<Socket>();
  #waiting = 0;

  constructor(options: BalancerOptions, replicas: Replicas) {
    this.#options = options;
    this.#replicas = replicas;
  }

  join(client: Socket): void {
    this.#keep(client);
    client.on("error", () => undefined);
    void this.#reach(client).then((server) => {
      if (server === undefined) client.resetAndDestroy();
      else if (client.destroyed) server.destroy();
      else pipeBoth(client, server);
    });
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** A connection to a replica; undefined when none is ready in time. */
  async #reach(client: Socket): Promise<Socket | undefined> {
    for (;;) {
      const target = this.#replicas.next() ?? ((await this.#wait()) ? this.#replicas.next() : undefined);
      if (target === undefined || client.destroyed) return undefined;
      const server = connect({ port: target, host: this.#options.host, noDelay: true, allowHalfOpen: true });
      this.#keep(server);
      try {
        await once(server, "connect");
        return server;
      } catch {
        this.#replicas.lost(target);
      }
    }
  }

  /** Until somebody is ready; false when that takes too long or too many wait. */
  async #wait(): Promise<boolean> {
    const { patienceMs = 10_000 } = this.#options;
    if (this.#waiting >= maxWaiting) return false;
    this.#waiting += 1;
    try {
      const giveUp = AbortSignal.timeout(patienceMs);
      await this.#replicas.until(() => this.#replicas.ready.length > 0, giveUp);
      return true;
    } catch {
      return false;
    } finally {
      this.#waiting -= 1;
    }
  }
}

/** What one side sends, ends or breaks off, the other one sees. */
function pipeBoth(client: Socket, server: Socket): void {
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.on("error", () => to.resetAndDestroy()).on("close", () => to.destroySoon());
    from.pipe(to);
  }
}

function isReady(host: string, port: number, stopping: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(pollTimeoutMs)]);
  return new Promise((resolve) => {
    const request = get({ host, port, path: "/readyz", agent: false, signal }, (response) => {
      response.on("error", () => undefined).resume();
      resolve(response.statusCode === 200);
    });
    request.on("error", () => resolve(false));
  });
}
