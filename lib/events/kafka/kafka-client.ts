import {
  type ISocketFactory,
  Kafka,
  type LogEntry,
  logLevel,
  type RetryOptions,
  type SASLOptions,
} from "kafkajs";
import type { Log } from "../../runtime/log.ts";
import type { KafkaConnection } from "./kafka-config.ts";
import { letKafkaConnectionsRest } from "./kafka-request-queue.ts";

/** How to make a client. */
export interface KafkaClientOptions {
  readonly connection: KafkaConnection;
  readonly clientId: string;
  readonly log: Log;
  /** Makes its sockets; as kafkajs does unless given. */
  readonly socketFactory?: ISocketFactory;
}

/**
 * Tries of one step inside of kafkajs: for connections that just broke and leaders that just moved. Whoever waits for
 * longer does so itself, with a new connection.
 */
export const briefRetry: RetryOptions = { retries: 4, initialRetryTime: 100, maxRetryTime: 1000 };

/**
 * A kafkajs client; connects to nothing by itself. Consumers of one client share what they know of a group's offsets, so
 * each of them needs a client of its own.
 */
export function createKafkaClient({ connection, clientId, log, socketFactory }: KafkaClientOptions): Kafka {
  const { brokers, ssl, sasl } = connection;
  if (!letKafkaConnectionsRest())
    log.warn("this kafkajs is not the known one: its idle connections don't rest");
  return new Kafka({
    clientId,
    brokers: [...brokers],
    ssl,
    ...(sasl === undefined ? {} : { sasl: { ...sasl } as SASLOptions }),
    ...(socketFactory === undefined ? {} : { socketFactory }),
    connectionTimeout: 3000,
    requestTimeout: 15_000,
    retry: briefRetry,
    logLevel: log.isLevelEnabled("debug") ? logLevel.DEBUG : logLevel.NOTHING,
    logCreator: () => (entry) => writeLog(log, entry),
  });
}

/** Network chatter of kafkajs at its debug level: several lines for each request. */
const chatter = /^(Connection|RequestQueue|Fetcher|FetchManager|ConsumerGroup)/;

/**
 * What kafkajs says is for whoever looks into it: it calls each failed try an error. What matters is logged by those who
 * use it. Only fields that are known to hold no content are passed on.
 */
function writeLog(log: Log, { namespace, level, log: { message, ...extra } }: LogEntry): void {
  if (level === logLevel.DEBUG && chatter.test(namespace)) return;
  const { groupId, topic, partition, error, retryCount } = extra;
  const reason = error instanceof Error ? error.message : error;
  log.debug({ kafka: namespace, groupId, topic, partition, reason, retryCount }, message);
}

/** The protocol's names of the errors behind what kafkajs threw, such as UNKNOWN_TOPIC_OR_PARTITION; outermost first. */
export function kafkaErrorTypes(thrown: unknown): readonly string[] {
  const types: string[] = [];
  for (let error = thrown; error instanceof Error && types.length < 10; error = error.cause) {
    const { type } = error as { type?: unknown };
    types.push(typeof type === "string" ? type : error.name);
  }
  return types;
}
