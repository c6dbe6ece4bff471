/**
 * One membership in a group with kafkajs, from joining to leaving or breaking. A broken one is not repaired: its successor
 * has a client of its own.
 *
 * 1. An offset is resolved and committed only after the handler has resolved, and only in the generation of the group
 *    in which the messages were fetched: after that the partition may be another member's.
 * 2. While a handler runs, heartbeats go on. They show when members come or go; then every running handler's signal
 *    fires, and when those have ended kafkajs joins again.
 * 3. A partition whose handler rejects is paused, longer each time, and fetched again from where it stood: the others
 *    go on.
 * 4. kafkajs does not restart by itself, and leaving waits for a join that is under way: otherwise the group keeps a
 *    member that holds partitions and reads nothing.
 */
import type { Admin, Consumer, EachBatchPayload, Kafka, KafkaMessage } from "kafkajs";
import type { Log } from "../../runtime/log.ts";
import { withLimit } from "../../runtime/with-limit.ts";
import type { BusMessage, ConsumeOptions } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import { briefRetry } from "./kafka-client.ts";
import type { KafkaFetchSockets } from "./kafka-fetch-sockets.ts";
import { KafkaGather } from "./kafka-gather.ts";
import { KafkaLag } from "./kafka-lag.ts";

/** Heartbeats in the time after which a silent member is taken for dead. */
const heartbeatsOfSession = 5;
/** A member that has heard nothing from a broker for so long has lost its way. */
const stuckAfterMs = 120_000;
const stuckCheckMs = 5000;
/** A member learns from what it reads how far it is, but nothing while it can't handle that. */
const measureEveryMs = 15_000;
/** How long brokers let a fetch wait for a message; a change of the group is heard of behind it, as with heartbeats. */
const maxFetchWaitMs = 2000;
const leaveTimeoutMs = 5000;

const consumerConfig = {
  rebalanceTimeout: 60_000,
  metadataMaxAge: 30_000,
  minBytes: 1,
  maxBytes: 4 * 1024 * 1024,
  maxBytesPerPartition: 512 * 1024,
  allowAutoTopicCreation: false,
  retry: { ...briefRetry, retries: 30, restartOnFailure: async () => false }, // 4.
};
const partitionsAtOnce = 4;

interface KafkaMemberOptions extends ConsumeOptions {
  /** A client that nothing else uses. */
  readonly client: Kafka;
  /** That client's. */
  readonly fetchSockets: KafkaFetchSockets;
  /** After so long without a heartbeat the brokers give its partitions to others. */
  readonly sessionTimeoutMs: number;
  readonly log: Log;
}

/** A membership; `broken` rejects when it can't go on. */
export class KafkaMember {
  readonly broken: Promise<never>;
  readonly #break: (reason: unknown) => void;
  readonly #options: KafkaMemberOptions;
  readonly #heartbeatMs: number;
  readonly #consumer: Consumer;
  readonly #admin: Admin;
  readonly #lag = new KafkaLag();
  readonly #gather = new KafkaGather();
  readonly #leaving = new AbortController();
  readonly #running = new Map<AbortController, Promise<void>>();
  readonly #pauses = new Map<number, RetryPause>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #generation = 0;
  #contactMs = performance.now();
  #joining: Promise<void> | undefined;

  constructor(options: KafkaMemberOptions) {
    const { client, group, sessionTimeoutMs } = options;
    this.#heartbeatMs = Math.floor(sessionTimeoutMs / heartbeatsOfSession);
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(() => undefined);
    this.broken = broken.promise;
    this.#break = broken.reject;
    this.#options = options;
    this.#consumer = client.consumer({
      ...consumerConfig,
      groupId: group,
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: this.#heartbeatMs,
      maxWaitTimeInMs: Math.min(maxFetchWaitMs, this.#heartbeatMs),
    });
    this.#admin = client.admin();
    this.#listen();
  }

  /** Milliseconds since a broker was last heard of as a member; Infinity before the first join. */
  get silentMs(): number {
    return this.#generation === 0 ? Number.POSITIVE_INFINITY : performance.now() - this.#contactMs;
  }

  get lag(): number | undefined {
    return this.#lag.value;
  }

  /** Joins the group and goes on; rejects when a broker or the topic is not there. */
  join(): Promise<void> {
    this.#joining ??= this.#join();
    return this.#joining;
  }

  /** Fires the signals of running handlers, waits for those and leaves the group. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    this.#fireSignals();
    for (const timer of this.#timers) clearTimeout(timer);
    const gone = (this.#joining ?? Promise.resolve()) // 4.
      .catch(() => undefined)
      .then(() => {
        const ends = [this.#consumer.disconnect(), this.#admin.disconnect()];
        // Not before: kafkajs would fetch again.
        this.#options.fetchSockets.cut();
        return Promise.all(ends);
      });
    await Promise.all(this.#running.values());
    await withLimit(gone, { timeoutMs: leaveTimeoutMs }).catch(() => undefined);
  }

  async #join(): Promise<void> {
    const { topic } = this.#options;
    await this.#consumer.connect();
    await this.#admin.connect();
    await this.#consumer.subscribe({ topics: [topic], fromBeginning: true });
    if (this.#leaving.signal.aborted) return;
    this.#contactMs = performance.now();
    this.#every(stuckCheckMs, () => {
      if (performance.now() - this.#contactMs > stuckAfterMs)
        this.#break(new Error("no broker has answered"));
    });
    await this.#consumer.run({
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: partitionsAtOnce,
      eachBatch: (payload) => this.#takeBatch(payload),
    });
    if (this.#generation === 0) await this.broken;
    this.#every(measureEveryMs, () => void this.#measure());
  }

  #every(intervalMs: number, act: () => void): void {
    if (!this.#leaving.signal.aborted) this.#timers.add(setInterval(act, intervalMs));
  }

  #listen(): void {
    const { events } = this.#consumer;
    const heard = () => {
      this.#contactMs = performance.now();
    };
    for (const event of [events.HEARTBEAT, events.FETCH, events.COMMIT_OFFSETS])
      this.#consumer.on(event, heard);
    this.#consumer.on(events.FETCH, () => this.#gather.fetched());
    this.#consumer.on(events.GROUP_JOIN, ({ payload }) => {
      heard();
      this.#generation += 1;
      this.#fireSignals();
      this.#lag.assign(payload.memberAssignment[this.#options.topic] ?? []);
      void this.#measure();
    });
    this.#consumer.on(events.CRASH, ({ payload }) => {
      this.#fireSignals();
      this.#break(payload.error);
    });
  }

  #fireSignals(): void {
    for (const controller of this.#running.keys()) controller.abort();
  }

  async #measure(): Promise<void> {
    const { topic, group, log } = this.#options;
    const generation = this.#generation;
    try {
      const [groupOffsets] = await this.#admin.fetchOffsets({ groupId: group, topics: [topic] });
      const ends = await this.#admin.fetchTopicOffsets(topic);
      if (generation !== this.#generation) return;
      const committed = new Map(groupOffsets?.partitions.map(({ partition, offset }) => [partition, offset]));
      this.#lag.measure(
        ends.map(({ partition, high, low }) => ({
          partition,
          end: BigInt(high),
          start: BigInt(low),
          committed: BigInt(committed.get(partition) ?? -1),
        })),
      );
    } catch (thrown) {
      log.debug({ err: thrown, group, topic }, "lag can't be measured");
    }
  }

  /** Hands a fetched batch over in parts. What it throws is of kafkajs, which joins again or tries again. */
  async #takeBatch(payload: EachBatchPayload): Promise<void> {
    if (this.#leaving.signal.aborted) return;
    const controller = new AbortController();
    const ended = Promise.withResolvers<void>();
    this.#running.set(controller, ended.promise);
    const heartbeats = this.#heartbeats(payload, controller); // 2.
    try {
      await this.#handleParts(payload, controller.signal);
      if (heartbeats.failure !== undefined) throw heartbeats.failure;
    } finally {
      clearInterval(heartbeats.timer);
      this.#running.delete(controller);
      ended.resolve();
    }
    await this.#gather.wait(payload.batch, this.#leaving.signal);
  }

  /** The group changes, or no longer knows this member: only errors of the protocol say so, others are of connections. */
  #heartbeats(payload: EachBatchPayload, controller: AbortController) {
    const heartbeats: { timer: NodeJS.Timeout; failure: unknown } = {
      failure: undefined,
      timer: setInterval(() => {
        if (performance.now() - this.#contactMs > this.#options.sessionTimeoutMs) controller.abort();
        payload.heartbeat().catch((thrown: unknown) => {
          if ((thrown as { type?: unknown }).type === undefined) return;
          heartbeats.failure = thrown;
          this.#fireSignals(); // 2.
        });
      }, this.#heartbeatMs),
    };
    return heartbeats;
  }

  async #handleParts(payload: EachBatchPayload, signal: AbortSignal): Promise<void> {
    const { batch } = payload;
    const { maxBatchMessages } = this.#options;
    const generation = this.#generation;
    const end = BigInt(batch.highWatermark);
    for (let index = 0; index < batch.messages.length; index += maxBatchMessages) {
      if (signal.aborted || !payload.isRunning()) return;
      const part = batch.messages
        .slice(index, index + maxBatchMessages)
        .map((message) => toBusMessage(batch, message));
      const last = part.at(-1)?.offset ?? 0n;
      this.#lag.advance(batch.partition, end, part[0]?.offset ?? 0n);
      try {
        await this.#options.handle(part, signal);
      } catch (thrown) {
        this.#postpone(payload, signal, thrown);
        return;
      }
      if (generation !== this.#generation) return; // 1.
      this.#pauses.delete(batch.partition);
      this.#lag.advance(batch.partition, end, last + 1n);
      payload.resolveOffset(String(last)); // 1.
      await payload.commitOffsetsIfNecessary(payload.uncommittedOffsets());
      await payload.heartbeat();
    }
  }

  #postpone({ batch, pause }: EachBatchPayload, signal: AbortSignal, thrown: unknown): void {
    const { group, log } = this.#options;
    const { topic, partition } = batch;
    if (signal.aborted) return;
    log.warn({ err: thrown, topic, partition, group }, "messages could not be handled; they come again");
    const waiting = this.#pauses.get(partition) ?? new RetryPause(100, 5000);
    this.#pauses.set(partition, waiting);
    const resume = pause(); // 3.
    void waiting.wait(this.#leaving.signal).then(() => {
      if (!this.#leaving.signal.aborted) resume();
    });
  }
}

function toBusMessage({ topic, partition }: EachBatchPayload["batch"], message: KafkaMessage): BusMessage {
  const { key, value, headers = {}, offset, timestamp } = message;
  return {
    topic,
    partition,
    key: key?.toString() ?? "",
    value: value === null ? new Uint8Array() : new Uint8Array(value.buffer, value.byteOffset, value.length),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, given]) => [
        name,
        String(Array.isArray(given) ? given.at(-1) : (given ?? "")),
      ]),
    ),
    offset: BigInt(offset),
    appendedAtMs: Number(timestamp),
  };
}
