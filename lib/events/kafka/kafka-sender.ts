/**
 * Appends messages with kafkajs' idempotent producer, which needs care:
 *
 * 1. One send at a time. A send that fails gives its sequence numbers back while the broker may have taken them, and
 *    another that ran meanwhile would get the same numbers, be taken for a copy and be lost.
 * 2. For the same reason a producer that has failed once is thrown away: its successor has a new id and starts at zero.
 *    It also cures producers that are out of sequence, fenced or unknown to the broker.
 * 3. A send whose answer does not name every partition has failed: when a partition moves to a broker that has answered
 *    already, kafkajs leaves its messages out and resolves.
 * 4. kafkajs can't be interrupted: when a signal fires the caller knows at once, and the next send waits until the try
 *    under way has ended, so that it lands behind it.
 */
import { type Kafka, type Message, Partitioners, type Producer, type RecordMetadata } from "kafkajs";
import { withLimit } from "../../runtime/with-limit.ts";
import { type OutgoingMessage, PublishError } from "../bus.ts";
import { briefRetry, kafkaErrorTypes } from "./kafka-client.ts";

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
/** So many in a row for a topic, each with what the brokers know then, make such a refusal final. */
const finalTopicRefusals = 5;

/** The sends of one client, one after another. */
export class KafkaSender {
  readonly #client: Kafka;
  readonly #closing = new AbortController();
  /** Topic refusals in a row, by topic. */
  readonly #refusals = new Map<string, number>();
  #lastSend: Promise<unknown> = Promise.resolve();
  #producer: PinnedProducer | undefined;

  constructor(client: Kafka) {
    this.#client = client;
  }

  async send(topic: string, messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<void> {
    if (messages.length === 0) return;
    const given = AbortSignal.any([signal, this.#closing.signal]);
    const sent = this.#lastSend.then(() => {
      given.throwIfAborted();
      return this.#send(topic, messages);
    });
    this.#lastSend = sent.catch(() => undefined); // 1.
    await withLimit(sent, { signal: given }); // 4.
  }

  /** Gives up what waits, lets the send under way end for a moment, and disconnects. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the bus was closed"));
    const ended = this.#lastSend.then(() => this.#producer?.disconnect());
    await withLimit(ended, { timeoutMs: closeTimeoutMs }).catch(() => this.#dropProducer());
  }

  async #send(topic: string, messages: readonly OutgoingMessage[]): Promise<void> {
    try {
      this.#producer ??= await PinnedProducer.connect(this.#client);
      await withLimit(this.#producer.send(topic, messages), { timeoutMs: stuckAfterMs });
      this.#refusals.delete(topic);
    } catch (thrown) {
      this.#dropProducer(); // 2.
      const types = kafkaErrorTypes(thrown);
      if (!this.#isFinal(topic, types)) throw thrown;
      throw new PublishError(`Kafka refuses messages for ${topic}: ${types.at(-1)}`, { cause: thrown });
    }
  }

  #isFinal(topic: string, types: readonly string[]): boolean {
    if (!types.some((type) => topicRefusals.has(type))) {
      this.#refusals.delete(topic);
      return types.some((type) => messageRefusals.has(type));
    }
    const refusals = (this.#refusals.get(topic) ?? 0) + 1;
    this.#refusals.set(topic, refusals);
    return refusals >= finalTopicRefusals;
  }

  #dropProducer(): void {
    this.#producer?.disconnect().catch(() => undefined);
    this.#producer = undefined;
  }
}

/** A connected producer that places each message once, however often kafkajs tries, and sees what was left out. */
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

  /** Rejects when the brokers did not confirm all of them. */
  async send(topic: string, given: readonly OutgoingMessage[]): Promise<void> {
    const messages = given.map(toKafkaMessage);
    const records: readonly RecordMetadata[] = await this.#producer.send({
      topic,
      messages,
      acks: -1,
      timeout: appendTimeoutMs,
    });
    const confirmed = new Set<number | undefined>(records.map(({ partition }) => partition));
    if (messages.every((message) => confirmed.has(this.#places.get(message)))) return; // 3.
    throw new Error("Kafka did not confirm all messages of a send");
  }

  disconnect(): Promise<void> {
    return this.#producer.disconnect();
  }
}

function toKafkaMessage({ key, value, headers }: OutgoingMessage): Message {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length);
  return { key, value: bytes, ...(headers === undefined ? {} : { headers: { ...headers } }) };
}
