import {
  type ListeningConnection,
  listenForNotifications,
  type Notifications,
} from "../../database/notifications.ts";
import type { Log } from "../../runtime/log.ts";
import { withLimit } from "../../runtime/with-limit.ts";
import { readerLockClass } from "./postgres-groups.ts";
import { busChannel, type LogEnd } from "./postgres-log.ts";

const connectTimeoutMs = 5000;

/** That a group has no other reader, until the connection ends or it is released. */
export interface ReaderLock extends ListeningConnection {
  release(): Promise<void>;
}

type AppendListener = (end: LogEnd) => void;

/** After so long without a word the database takes a client for dead, and frees what it has locked: about 25 s. */
const keepAlive =
  "SELECT set_config('tcp_keepalives_idle', '10', false), \
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)";

/**
 * The connection over which a bus hears of messages and holds the locks of its readers, so that both end together. It is
 * made when it is first needed, and again when it broke.
 */
export class PostgresSession {
  readonly #options: { url: string; log: Log };
  readonly #listeners = new Set<AppendListener>();
  /** Groups read by this process: the database lets one session lock the same twice. */
  readonly #groups = new Set<number>();
  #notifications: Notifications | undefined;
  #listening = Promise.withResolvers<ListeningConnection>();

  constructor(options: { url: string; log: Log }) {
    this.#options = options;
  }

  /** Begins to hear; returns how to end it. Whoever locks a group has to look once for what was missed. */
  listen(listener: AppendListener): () => void {
    this.#listeners.add(listener);
    this.#notifications ??= listenForNotifications({
      ...this.#options,
      channel: busChannel,
      onNotification: (payload) => this.#onNotification(payload),
      onListening: (connection) => {
        this.#listening.resolve(connection);
        connection.ended.addEventListener("abort", () => {
          this.#listening = Promise.withResolvers();
        });
        // Goes before whatever is asked next; a connection on which it fails ends.
        connection.query({ text: keepAlive, values: [] }).catch(() => undefined);
      },
    });
    return () => this.#listeners.delete(listener);
  }

  /** Notifies the readers of this process at once; those of others are notified by the database. */
  notify(end: LogEnd): void {
    for (const listener of this.#listeners) listener(end);
  }

  /** Undefined when the group has another reader. Rejects when there is no connection for a while, and with the signal. */
  async lock(groupId: number, signal: AbortSignal): Promise<ReaderLock | undefined> {
    const connection = await withLimit(this.#listening.promise, { timeoutMs: connectTimeoutMs, signal });
    if (this.#groups.has(groupId)) return undefined;
    this.#groups.add(groupId);
    try {
      const values = [readerLockClass, groupId];
      const text = "SELECT pg_try_advisory_lock($1, $2) AS free";
      const [answer] = await connection.query<{ free: boolean }>({ text, values });
      if (answer?.free === true) return { ...connection, release: () => this.#release(connection, groupId) };
    } catch (thrown) {
      this.#groups.delete(groupId);
      throw thrown;
    }
    this.#groups.delete(groupId);
    return undefined;
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#notifications?.close();
  }

  async #release(connection: ListeningConnection, groupId: number): Promise<void> {
    const values = [readerLockClass, groupId];
    const unlocked = connection.query({ text: "SELECT pg_advisory_unlock($1, $2)", values });
    // A connection that is gone holds nothing.
    await unlocked.catch(() => undefined);
    this.#groups.delete(groupId);
  }

  #onNotification(payload: string): void {
    const [, topicId, nextOffset] = /^(\d{1,9}):(\d{1,18})$/.exec(payload) ?? [];
    if (topicId === undefined || nextOffset === undefined) return;
    this.notify({ topicId: Number(topicId), nextOffset: BigInt(nextOffset) });
  }
}
