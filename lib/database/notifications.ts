import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Log } from "../runtime/log.ts";

interface NotificationOptions {
  readonly url: string;
  /** Lower-case letters, digits and underscores. */
  readonly channel: string;
  readonly log: Log;
  onNotification(payload: string): void;
  /** Called each time that hearing begins: what was notified before was missed. */
  onListening(connection: ListeningConnection): void;
}

/** The connection over which is heard, as long as it lasts. */
export interface ListeningConnection {
  /** Fires when it is broken or closed. */
  readonly ended: AbortSignal;
  /**
   * Asks over it: for what is to end with it, such as advisory locks of the session. A connection that takes longer than
   * `timeoutMs` to answer, 15 s unless given, counts as broken.
   */
  query<Row>(query: {
    text: string;
    values: readonly unknown[];
    timeoutMs?: number;
  }): Promise<readonly Row[]>;
}

/** A subscription to a channel. */
export interface Notifications {
  close(): Promise<void>;
}

const reconnectMs = 1000;
const connectTimeoutMs = 5000;
const keepAliveAfterMs = 10_000;
const queryTimeoutMs = 15_000;
const endTimeoutMs = 1000;

/**
 * Hears what is notified on a channel, over one connection of its own. Returns at once; a connection that can't be made
 * or breaks is made again, second after second, until `close`.
 */
export function listenForNotifications(options: NotificationOptions): Notifications {
  if (!/^[a-z_][a-z0-9_]*$/.test(options.channel)) throw new Error(`not a plain name: ${options.channel}`);
  const closing = new AbortController();
  const ended = listen(options, closing.signal);
  return {
    close() {
      closing.abort();
      return ended;
    },
  };
}

async function listen(options: NotificationOptions, closing: AbortSignal): Promise<void> {
  let away = false;
  while (!closing.aborted) {
    try {
      await listenOnce(options, closing, () => {
        if (away) options.log.info({ channel: options.channel }, "database notifications are back");
        away = false;
      });
    } catch (thrown) {
      if (!away)
        options.log.warn({ err: thrown, channel: options.channel }, "database notifications are away");
      away = true;
    }
    await delay(reconnectMs, undefined, { signal: closing }).catch(() => undefined);
  }
}

/** Resolves when told to close; rejects when the connection can't be made or breaks. */
async function listenOnce(
  { url, channel, onNotification, onListening }: NotificationOptions,
  closing: AbortSignal,
  onConnected: () => void,
): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: `media-gateway ${channel}`,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    connectionTimeoutMillis: connectTimeoutMs,
  });
  const end = Promise.withResolvers<void>();
  const ended = new AbortController();
  // Also when nobody awaits it yet.
  end.promise.catch(() => undefined);
  client.on("error", end.reject);
  client.on("end", () => end.reject(new Error("the connection ended")));
  client.on("notification", ({ payload }) => onNotification(payload ?? ""));
  const onClosing = () => end.resolve();
  closing.addEventListener("abort", onClosing, { once: true });
  try {
    await client.connect();
    await client.query(`LISTEN ${channel}`);
    onConnected();
    let last: Promise<unknown> = Promise.resolve();
    onListening({
      ended: ended.signal,
      async query({ text, values, timeoutMs = queryTimeoutMs }) {
        const late = setTimeout(() => end.reject(new Error("the database does not answer")), timeoutMs);
        const answer = last.then(() => client.query({ text, values: [...values] }));
        last = answer.catch(() => undefined);
        try {
          return (await Promise.race([answer, end.promise.then(() => answer)])).rows;
        } finally {
          clearTimeout(late);
        }
      },
    });
    await end.promise;
  } finally {
    ended.abort();
    closing.removeEventListener("abort", onClosing);
    // One that does not answer would not say that it ends, either.
    const left = client.end().catch(() => undefined);
    await Promise.race([left, delay(endTimeoutMs, undefined, { ref: false })]);
  }
}
