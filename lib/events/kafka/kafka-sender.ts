/**
 * Appends messages with kafkajs' idempotent producer, which needs care:
 *
 * 1. One send at a time. A send that fails gives its sequence numbers back while the broker may have taken them, and
 *    another that ran meanwhile would get the same numbers, be taken for a copy and be lost.
 * 2. For the same reason a producer that has failed once is thrown away: its successor has a new id and starts at zero.
 *    It also cures producers that are out of sequence, fenced or forgotten.
 * 3. What a send's answer does not name is sent again: when a partition moves to a broker that has answered already,
 *    kafkajs leaves its messages out and resolves.
 * 4. kafkajs can't be interrupted: when a signal fires the caller knows at once, and the next send waits until the try
 *    under way has ended, so that it lands behind it.
 */
import { type Kafka, type Message, Partitioners, type Producer, type RecordMetadata } from "kafkajs";
import type { Log } from "../../runtime/log.ts";
import { type OutgoingMessage, PublishError } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import { withLimit } from "../with-limit.ts";
import { briefRetry, kafkaErrorTypes } from "./kafka-client.ts";

/** Brokers take 1 MiB for each partition of a request unless told otherwise, batch and headers included. */
const maxRequestBytes = 768 * 1024;
const maxRequestMessages = 1000;
const maxWaitingSends = 1000;
/** After so long kafkajs has lost its way: its own retries and timeouts end before. */
const stuckAfterMs = 60_000;
const closeTimeoutMs = 5000;
/** How long a broker waits for the other copies; less than the time after which a request is given up. */
const appendTimeoutMs = 10_000;

/** Refusals that concern the messages themselves. */
const messageRefusals = new Set([
  "MESSAGE_TOO_LARGE",
  "RECORD_LIST_TOO_LARGE",
  "INVALID_RECORD",
  "INVALID_TIMESTAMP",
]);
/** Refusals that a broker gives for a while after a topic was made or its rights were changed. */
const topicRefusals = new Set([
  "UNKNOWN_TOPIC_OR_PARTITION",
  "INVALID_TOPIC_EXCEPTION",
  "TOPIC_AUTHORIZATION_FAILED",
  "CLUSTER_AUTHORIZATION_FAILED",
]);
/** So many tries in a row, each with what the brokers know then, make such a refusal final. */
const triesOfTopicRefusal = 5;

interface Job {
  readonly topic: string;
  readonly messages: readonly OutgoingMessage[];
  readonly signal: AbortSignal;
  readonly done: PromiseWithResolvers<void>;
}

/** The sends of one client, in the order in which they were asked for. */
export class KafkaSender {
  readonly #client: Kafka;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #waiting: Job[] = [];
  #running: Promise<void> | undefined;
  #producer: PinnedProducer | undefined;
  #away = false;

  constructor(client: Kafka, log: Log) {
    this.#client = client;
    this.#log = log;
  }

  /** See Bus.send. */
  async send(topic: string, messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    if (messages.length === 0) return;
    if (this.#waiting.length >= maxWaitingSends) throw new Error("too many sends wait for Kafka");
    const job = { topic, messages, signal, done: Promise.withResolvers<void>() };
    this.#waiting.push(job);
    this.#running ??= this.#runAll();
    try {
      await withLimit(job.done.promise, { signal });
    } finally {
      this.#waiting = this.#waiting.filter((other) => other !== job);
    }
  }

  /** Gives up what waits, lets the try under way end for a moment, and disconnects. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the bus was closed"));
    for (const { done } of this.#waiting.splice(0)) done.reject(this.#closing.signal.reason);
    const ended = (this.#running ?? Promise.resolve()).then(() => this.#producer?.disconnect());
    await withLimit(ended, { timeoutMs: closeTimeoutMs }).catch(() => this.#dropProducer());
  }

  async #runAll(): Promise<void> {
    for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift()) {
      await this.#run(job).then(job.done.resolve, job.done.reject);
    }
    this.#running = undefined;
  }

  async #run({ topic, messages, signal }: Job): Promise<void> {
    const given = AbortSignal.any([signal, this.#closing.signal]);
    for (const part of inRequests(messages)) await this.#sendUntilTaken(topic, part, given);
  }

  async #sendUntilTaken(topic: string, messages: readonly OutgoingMessage[], signal: AbortSignal) {
    const pause = new RetryPause(100, 2000);
    let left = messages;
    let refusals = 0;
    while (left.length > 0) {
      signal.throwIfAborted();
      try {
        this.#producer ??= await PinnedProducer.connect(this.#client);
        left = await withLimit(this.#producer.send(topic, left), { timeoutMs: stuckAfterMs });
        if (left.length > 0) throw new Error("Kafka did not confirm all messages of a send");
        this.#isBack();
      } catch (thrown) {
        this.#dropProducer();
        const types = kafkaErrorTypes(thrown);
        refusals = types.some((type) => topicRefusals.has(type)) ? refusals + 1 : 0;
        const isFinal = types.some((type) => messageRefusals.has(type)) || refusals >= triesOfTopicRefusal;
        if (isFinal)
          throw new PublishError(`Kafka refuses messages for ${topic}: ${types.at(-1)}`, { cause: thrown });
        this.#isAway(thrown);
        await pause.wait(signal);
      }
    }
  }

  #dropProducer(): void {
    this.#producer?.disconnect().catch(() => undefined);
    this.#producer = undefined;
  }

  #isAway(thrown: unknown): void {
    if (!this.#away) this.#log.warn({ err: thrown }, "Kafka takes no messages; sends are tried again");
    this.#away = true;
  }

  #isBack(): void {
    if (this.#away) this.#log.info("Kafka takes messages again");
    this.#away = false;
  }
}

/** Messages in their order, in parts that go into one request. A message that is too large makes a part of its own. */
function inRequests(messages: readonly OutgoingMessage[]): readonly (readonly OutgoingMessage[])[] {
  const parts: OutgoingMessage[][] = [];
  let bytes = 0;
  for (const message of messages) {
    const size = sizeOf(message);
    const part = parts.at(-1);
    bytes += size;
    if (part !== undefined && bytes <= maxRequestBytes && part.length < maxRequestMessages) {
      part.push(message);
      continue;
    }
    parts.push([message]);
    bytes = size;
  }
  return parts;
}

function sizeOf({ key, value, headers = {} }: OutgoingMessage): number {
  const texts = [key, ...Object.entries(headers).flat()];
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 5, value.length + 32);
}

/** A connected producer that places each message once, however often kafkajs tries, and tells what was left out. */
class PinnedProducer {
  readonly #places = new WeakMap<Message, number>();
  readonly #producer: Producer;

  private constructor(client: Kafka) {
    this.#producer = client.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      metadataMaxAge: 60_000,
      // A leader that is gone without a word is found out by a new producer, not by asking it again.
      retry: { ...briefRetry, retries: 1 },
      createPartitioner: () => {
        const place = Partitioners.DefaultPartitioner();
        return (given) => {
          const partition = this.#places.get(given.message) ?? place(given);
          this.#places.set(given.message, partition);
          return partition;
        };
      },
    });
  }

  /** Rejects when no broker answers. */
  static async connect(client: Kafka): Promise<PinnedProducer> {
    const pinned = new PinnedProducer(client);
    try {
      await withLimit(pinned.#producer.connect(), { timeoutMs: stuckAfterMs });
    } catch (thrown) {
      pinned.disconnect().catch(() => undefined);
      throw thrown;
    }
    return pinned;
  }

  /** Resolves with the messages that the brokers did not confirm. */
  async send(topic: string, given: readonly OutgoingMessage[]): Promise<readonly OutgoingMessage[]> {
    const messages = given.map(toKafkaMessage);
    const records: readonly RecordMetadata[] = await this.#producer.send({
      topic,
      messages,
      acks: -1,
      timeout: appendTimeoutMs,
    });
    const confirmed = new Set(records.map(({ partition }) => partition));
    return given.filter((_, index) => {
      const place = this.#places.get(messages[index] as Message);
      return place === undefined || !confirmed.has(place);
    });
  }

  disconnect(): Promise<void> {
    return this.#producer.disconnect();
  }
}

function toKafkaMessage({ key, value, headers }: OutgoingMessage): Message {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length);
  return { key, value: bytes, ...(headers === undefined ? {} : { headers: { ...headers } }) };
}
