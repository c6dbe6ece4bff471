/**
 * The bus: topics of messages that are kept in order for each key and read by groups, each at its own pace. Two
 * implementations, Kafka and PostgreSQL, pass one suite.
 *
 * - A message that `send` has confirmed is durable and reaches every group at least once.
 * - Messages of one key stand in the order in which they were sent, each send after the one before had ended, and are
 *   handled in it.
 * - A group goes on behind a message only after its handler has finished with it; a group that is new begins at the
 *   earliest message.
 * - The bus never looks for duplicates: stores do.
 */

/** A message to put on a topic. */
export interface OutgoingMessage {
  /** Decides the partition: messages of one key keep their order. */
  readonly key: string;
  readonly value: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A message as it stands on a topic. */
export interface BusMessage extends Required<OutgoingMessage> {
  readonly topic: string;
  readonly partition: number;
  /** Its place in the partition; counts up, with gaps. */
  readonly offset: bigint;
  /** When it was appended, Unix milliseconds. */
  readonly appendedAtMs: number;
}

/** A topic as an operator configures it. */
export interface TopicSettings {
  readonly name: string;
  readonly partitions: number;
  /** Copies of each partition; means nothing on PostgreSQL. */
  readonly replication: number;
  /** How long messages are kept at least, milliseconds. */
  readonly retentionMs: number;
}

/**
 * What comes within so long of the last batch is handled together, milliseconds; what comes after a quiet time, at once.
 * Each batch costs a fetch, a transaction and the commit of its place, whatever it holds.
 */
export const gatherMs = 500;

/** How a group reads a topic. */
export interface ConsumeOptions {
  readonly topic: string;
  /** Members of one group share the partitions. */
  readonly group: string;
  /** Most messages handed over at once. */
  readonly maxBatchMessages: number;
  /**
   * Handles messages of one partition, in their order and never two batches of a partition at a time. When it
   * resolves the group goes on behind them; when it rejects, or the process dies, they come again. `signal` fires when
   * the partition is taken away or the consumer leaves: what has not been stored by then is another member's.
   */
  handle(batch: readonly BusMessage[], signal: AbortSignal): Promise<void>;
}

/** A member of a group. */
export interface BusConsumer {
  /** Whether the group's place could be read lately: false while the bus is away. */
  readonly connected: boolean;
  /** How many messages of this member's partitions wait behind those handled; undefined while it is not known. */
  readonly lag: number | undefined;
  /** Lets the running batch end, commits it and leaves the group. Called once. */
  leave(): Promise<void>;
}

/** A group and the instant it is to go on from. */
export interface SeekOptions {
  readonly topic: string;
  readonly group: string;
  /** It goes on at the first message appended at or after this instant, Unix milliseconds. */
  readonly timestampMs: number;
}

/** What a topic really is, as far as it differs from what was asked for. */
export interface TopicState {
  readonly name: string;
  /** Whether this call made it. */
  readonly created: boolean;
  /** What is not as configured and was not changed, in words. */
  readonly differences: readonly string[];
}

/** A bus. Nothing is connected before it is needed, and a bus that is away is waited for. */
export interface Bus {
  /** What it runs on, as traces name it. */
  readonly system?: "kafka" | "postgresql";
  /**
   * Tries once to append messages and resolves when all are durable. Rejects with PublishError when they never will be;
   * after any other failure, the signal's included, the outcome is unknown and they may be sent again: see SendQueue,
   * through which everything goes.
   */
  send(topic: string, messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<void>;
  /** Joins a group; returns at once and connects in the background, again and again while the bus is away. */
  consume(options: ConsumeOptions): BusConsumer;
  /** Moves a group that has no members. Rejects when it has some, or when the bus is away. */
  seek(options: SeekOptions, signal: AbortSignal): Promise<void>;
  /** Makes the topics that are missing and reports what differs of the others. More partitions are added, never fewer. */
  ensureTopics(topics: readonly TopicSettings[], signal: AbortSignal): Promise<readonly TopicState[]>;
  /** How long a topic keeps messages, milliseconds; Infinity for ever. Rejects when the bus is away or has no such topic. */
  retentionMs(topic: string, signal: AbortSignal): Promise<number>;
  /** Ends what is under way and disconnects; consumers have left before. */
  close(): Promise<void>;
}

/** A message that the bus will never take: too large, no such topic, not allowed. Retrying it is of no use. */
export class PublishError extends Error {
  override readonly name = "PublishError";
}
