import { randomUUID } from "node:crypto";
import type { BusConsumer, BusMessage, ConsumeOptions, TopicSettings } from "../../../lib/events/bus.ts";
import { createKafkaBus, type KafkaBus, type KafkaBusOptions } from "../../../lib/events/kafka/kafka-bus.ts";
import { silentLog } from "../../../lib/runtime/log.ts";

/** How long a test waits for a broker to do its part, milliseconds. */
export const kafkaPatienceMs = 60_000;

/** How long a test may take that waits more than once, or starts a broker, milliseconds. */
export const kafkaTimeoutMs = 180_000;

/** What a test uses of a broker: topics that nothing else uses, and clients and members, to be closed. */
export class KafkaStage {
  readonly #brokers: readonly string[];
  readonly #buses: KafkaBus[] = [];
  readonly #consumers: BusConsumer[] = [];

  constructor(brokers: readonly string[]) {
    this.#brokers = brokers;
  }

  open(options: Partial<KafkaBusOptions> = {}): KafkaBus {
    const connection = { brokers: this.#brokers, ssl: false };
    const bus = createKafkaBus({ connection, clientId: "test", log: silentLog, ...options });
    this.#buses.push(bus);
    return bus;
  }

  async makeTopic(settings: Partial<TopicSettings> = {}): Promise<string> {
    const name = `topic.${randomUUID()}`;
    const topic = { name, partitions: 1, replication: 1, retentionMs: 3_600_000, ...settings };
    await this.open().ensureTopics([topic], AbortSignal.timeout(kafkaPatienceMs));
    return name;
  }

  /** A member of a group, which `close` lets leave; what it was handed stands in `messages`, copies included. */
  read(bus: KafkaBus, options: Partial<ConsumeOptions> & { topic: string }) {
    const messages: BusMessage[] = [];
    const consumer = bus.consume({
      group: `group.${randomUUID()}`,
      maxBatchMessages: 100,
      ...options,
      async handle(batch, signal) {
        await options.handle?.(batch, signal);
        messages.push(...batch);
      },
    });
    this.#consumers.push(consumer);
    return { consumer, messages, texts: () => textsByKey(messages) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#consumers.map((consumer) => consumer.leave()));
    await Promise.all(this.#buses.map((bus) => bus.close()));
  }
}

/** A message with a text as its value. */
export function textMessage(key: string, text: string) {
  return { key, value: Buffer.from(text) };
}

/** The texts of each key in the order in which they first came, without copies. */
function textsByKey(messages: readonly BusMessage[]): Readonly<Record<string, readonly string[]>> {
  const grouped = Object.groupBy(messages, ({ key }) => key);
  return Object.fromEntries(
    Object.entries(grouped).map(([key, given = []]) => [
      key,
      [...new Set(given.map(({ value }) => Buffer.from(value).toString()))],
    ]),
  );
}
