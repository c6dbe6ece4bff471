import { createClient } from "@redis/client";
import { enterScript, giveScript, oweScript, renewScript, takeScript } from "./redis-scripts.ts";

/** How to reach Redis; times in milliseconds. */
interface RedisConnectionOptions {
  /** redis:// or rediss://; a secret. */
  readonly url: string;
  /** How long opening a connection may take, its handshake included. */
  readonly openTimeoutMs: number;
  /** Called when a connection that was ready is no more. */
  readonly onLost: (cause: string) => void;
}

/** Commands that may wait for an answer at one time; more are refused. */
const maxPending = 10_000;
/** How long the last commands before an orderly end may take. */
const closeTimeoutMs = 500;

function newClient({ url, openTimeoutMs }: RedisConnectionOptions) {
  return createClient({
    url,
    scripts: { take: takeScript, enter: enterScript, give: giveScript, renew: renewScript, owe: oweScript },
    // Shorter, since a client that is destroyed while it connects would not notice.
    socket: { connectTimeout: openTimeoutMs / 2, reconnectStrategy: false },
    disableOfflineQueue: true,
    commandsQueueMaxLength: maxPending,
    // Whoever calls has a deadline; the client's own would cost an AbortSignal a command.
    commandOptions: { timeout: 0 },
    disableClientInfo: true,
    maintNotifications: "disabled",
  });
}

/**
 * The connection to Redis. It never opens itself again and never queues while it is not ready: who uses it decides
 * when to try. No command has a deadline here.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  #client: ReturnType<typeof newClient> | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
  }

  get ready(): boolean {
    return this.#client?.isReady ?? false;
  }

  /** Opens a connection in place of the one there is. Rejects when that does not work out in time. */
  async open(): Promise<void> {
    this.drop();
    const client = newClient(this.#options);
    this.#client = client;
    client.on("error", (error: unknown) => this.#lost(client, error));
    const timer = setTimeout(() => client.destroy(), this.#options.openTimeoutMs);
    try {
      await client.connect();
    } finally {
      clearTimeout(timer);
      if (!client.isReady || this.#client !== client) client.destroy();
    }
  }

  /** The scripts, as commands. Throws where there is no connection. */
  get commands() {
    if (this.#client === undefined) throw Object.assign(new Error("not connected"), { code: "ENOTCONN" });
    return this.#client;
  }

  /** Gives the connection up; what still waits on it is rejected. */
  drop(): void {
    this.#client?.destroy();
    this.#client = undefined;
  }

  /** Lets the last commands get their answers, then gives it up. */
  async close(): Promise<void> {
    const client = this.#client;
    if (client?.isReady) {
      const timer = setTimeout(() => client.destroy(), closeTimeoutMs);
      await client.close();
      clearTimeout(timer);
    }
    this.drop();
  }

  #lost(client: ReturnType<typeof newClient>, error: unknown): void {
    if (this.#client !== client) return;
    this.drop();
    this.#options.onLost(redisFailure(error));
  }
}

/** One word that says what is wrong with Redis: an errno, the code of an error reply, or a kind. No address, no text. */
export function redisFailure(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "unknown";
  const { code } = thrown as NodeJS.ErrnoException;
  return code ?? /^[A-Z]{2,}(?= |$)/.exec(thrown.message)?.[0] ?? thrown.constructor.name;
}
