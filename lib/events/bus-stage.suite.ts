import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { sendMessages } from "../../test/support/kafka/send-messages.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import type { Bus, BusConsumer, BusMessage, ConsumeOptions, OutgoingMessage, TopicSettings } from "./bus.ts";

/** A bus to examine. */
export interface BusUnderTest {
  /** Another client of the same bus, as another process has it; whoever examines closes it. */
  open(): Bus;
  /** Frees what the setup holds, after every client. */
  close(): Promise<void>;
}

/** How long to wait for what must come, milliseconds: a group may need many seconds to let a member in. */
export const patience = { timeout: 60_000, interval: 20 };

/** What one test uses of the bus: names that nothing else uses, and everything opened, to be closed. */
export class BusStage {
  readonly #given: BusUnderTest;
  readonly #readers: BusReader[] = [];
  readonly #buses: Bus[] = [];
  #rounds = 0;

  constructor(given: BusUnderTest) {
    this.#given = given;
  }

  name(what: string): string {
    return `${what}.${randomBytes(8).toString("hex")}`;
  }

  open(): Bus {
    const bus = this.#given.open();
    this.#buses.push(bus);
    return bus;
  }

  settings(settings: Partial<TopicSettings>): TopicSettings {
    return { name: this.name("topic"), partitions: 1, replication: 1, retentionMs: 86_400_000, ...settings };
  }

  /** A new topic and a client. */
  async topic(settings: Partial<TopicSettings>): Promise<{ topic: string; bus: Bus }> {
    const topic = this.settings(settings);
    const bus = this.open();
    await bus.ensureTopics([topic], patiently());
    return { topic: topic.name, bus };
  }

  read(
    bus: Bus,
    options: { topic: string; group?: string; maxBatchMessages?: number },
    handle: ConsumeOptions["handle"] = async () => undefined,
  ): BusReader {
    const reader = new BusReader(bus, {
      group: this.name("group"),
      maxBatchMessages: 50,
      ...options,
      handle,
    });
    this.#readers.push(reader);
    return reader;
  }

  async send(bus: Bus, topic: string, bodies: readonly string[], key?: string): Promise<void> {
    await sendMessages(
      bus,
      topic,
      bodies.map((body) => text(key ?? `key of ${body}`, body)),
      patiently(),
    );
  }

  /** Sends to every partition and gives, once all of it has arrived, which partitions each reader had. */
  async round(bus: Bus, topic: string, readers: readonly BusReader[]): Promise<number[][]> {
    this.#rounds += 1;
    const bodies = Array.from({ length: 40 }, (_, index) => `round ${this.#rounds} ${index}`);
    await this.send(bus, topic, bodies);
    const arrived = () => new Set(readers.flatMap((reader) => reader.texts()));
    await waitUntil(
      () => {
        const all = arrived();
        return bodies.every((body) => all.has(body));
      },
      { timeoutMs: patience.timeout, intervalMs: patience.interval },
    );
    return readers.map((reader) => {
      const own = reader.messages.filter(({ value }) => bodies.includes(textOf(value)));
      return [...new Set(own.map(({ partition }) => partition))];
    });
  }

  /** Two keys that lie in different partitions. */
  async keysOfTwoPartitions(bus: Bus, topic: string): Promise<string[]> {
    const reader = this.read(bus, { topic });
    await this.send(
      bus,
      topic,
      Array.from({ length: 20 }, (_, index) => String(index)),
    );
    await waitUntil(() => reader.firsts().length === 20, {
      timeoutMs: patience.timeout,
      intervalMs: patience.interval,
    });
    await reader.leave();
    const keys = new Map(reader.messages.map(({ partition, key }) => [partition, key]));
    return [...keys.values()];
  }

  async clear(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.leave()));
    await Promise.all(this.#buses.map((bus) => bus.close()));
  }
}

/** A member of a group that keeps what it was handed. */
export class BusReader {
  readonly batches: { messages: readonly BusMessage[]; failed: boolean }[] = [];
  readonly consumer: BusConsumer;
  #left: Promise<void> | undefined;

  constructor(bus: Bus, options: ConsumeOptions) {
    this.consumer = bus.consume({
      ...options,
      handle: async (messages, signal) => {
        const batch = { messages: [...messages], failed: false };
        this.batches.push(batch);
        await options.handle(messages, signal).catch((thrown: unknown) => {
          batch.failed = true;
          throw thrown;
        });
      },
    });
  }

  get messages(): readonly BusMessage[] {
    return this.batches.flatMap(({ messages }) => messages);
  }

  /** Without copies: a message may come again. */
  firsts(): readonly BusMessage[] {
    const places = new Map<string, BusMessage>();
    for (const message of this.messages) {
      const place = `${message.partition}/${message.offset}`;
      if (!places.has(place)) places.set(place, message);
    }
    return [...places.values()];
  }

  texts(): readonly string[] {
    return this.firsts().map(({ value }) => textOf(value));
  }

  sorted(): readonly string[] {
    return [...this.texts()].sort();
  }

  textsByKey(): Record<string, string[]> {
    const grouped = Object.groupBy(this.firsts(), ({ key }) => key);
    return Object.fromEntries(
      Object.entries(grouped).map(([key, messages = []]) => [
        key,
        messages.map(({ value }) => textOf(value)),
      ]),
    );
  }

  /** Messages that come for the first time stand behind all that came before from their partition. */
  expectOrderedOffsets(): void {
    const last = new Map<number, bigint>();
    for (const { partition, offset } of this.firsts()) {
      expect(offset).toBeGreaterThan(last.get(partition) ?? -1n);
      last.set(partition, offset);
    }
  }

  leave(): Promise<void> {
    this.#left ??= this.consumer.leave();
    return this.#left;
  }
}

/** A signal that fires when patience is over. */
export function patiently(): AbortSignal {
  return AbortSignal.timeout(patience.timeout);
}

/** A text in UTF-8. */
export function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

/** A message of a text. */
export function text(key: string, body: string): OutgoingMessage {
  return { key, value: bytes(body) };
}

/** The text in a message's value. */
export function textOf(value: Uint8Array): string {
  return Buffer.from(value).toString();
}
