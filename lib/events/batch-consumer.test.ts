import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { sendMessages } from "../../test/support/kafka/send-messages.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLog, silentLog } from "../runtime/log.ts";
import { StartError } from "../runtime/start-error.ts";
import { EventConsumer, type EventConsumerOptions } from "./batch-consumer.ts";
import type { Bus, OutgoingMessage } from "./bus.ts";
import { type BusReader, BusStage, bytes, patience, patiently, text } from "./bus-stage.suite.ts";
import { toEventMessage } from "./event-message.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./postgres/bus-database.suite.ts";
import { createPostgresBus } from "./postgres/postgres-bus.ts";
import { sampleEvent } from "./sample-event.suite.ts";
import { allTopics, deadLetterTopicOf, generationEventsTopic } from "./topics.ts";

const hourMs = 3_600_000;
const group = "test.group";
const accountId = randomUUID();
const deadLetterTopic = deadLetterTopicOf(generationEventsTopic);

/** What a store throws when it can't take events for what is in them, and when it can't take any now. */
class BadEvents extends Error {}
class StoreAway extends Error {}

describe("a consumer of events", { timeout: 60_000 }, () => {
  let given: BusDatabaseUnderTest;
  let stage: BusStage;
  let bus: Bus;
  let letters: BusReader;
  let consumer: EventConsumer | undefined;

  beforeEach(async () => {
    given = await openBusDatabase();
    stage = new BusStage({
      open: () => createPostgresBus({ url: given.url, log: silentLog }),
      close: given.close,
    });
    bus = stage.open();
    await bus.ensureTopics(allTopics({ partitions: 1, replication: 1, retentionMs: hourMs }), patiently());
    letters = stage.read(bus, { topic: deadLetterTopic });
  });
  afterEach(async () => {
    await consumer?.stop();
    consumer = undefined;
    await stage.clear();
    await given.close();
  });

  function consume(
    options: Partial<EventConsumerOptions> & Pick<EventConsumerOptions, "apply">,
  ): EventConsumer {
    const isPoison = (error: unknown) => error instanceof BadEvents;
    consumer = new EventConsumer({ bus, group, log: silentLog, maxAgeMs: 2 * hourMs, isPoison, ...options });
    return consumer;
  }

  const events = (count: number) => Array.from({ length: count }, () => sampleEvent({ accountId }));
  const publish = (messages: readonly OutgoingMessage[]) =>
    sendMessages(bus, generationEventsTopic, messages, patiently());
  const headersOf = () => letters.firsts().map(({ headers }) => headers);
  const reasons = () => headersOf().map(({ "dead-letter-reason": reason }) => reason);

  test("applies events in their order, in batches", async () => {
    const sent = events(30);
    await publish(sent.map(toEventMessage));
    const store = new Store();
    const running = consume({ apply: store.apply, maxBatchMessages: 8 });
    await expect.poll(() => store.ids(), patience).toEqual(sent.map(({ eventId }) => eventId));
    expect(Math.max(...store.sizes)).toBeLessThanOrEqual(8);
    expect(store.stored[0]).toEqual(sent[0]);
    await waitUntil(() => running.connected && running.lag === 0);
    expect(running).toMatchObject({ applied: 30, deadLettered: 0 });
    expect(letters.messages).toEqual([]);
  });

  test("quarantines what can't be decoded, as it came and with its place, and goes on", async () => {
    const [first, last] = events(2).map(toEventMessage);
    if (first === undefined || last === undefined) throw new Error("unreachable");
    const bad = { key: "odd", value: bytes("\u0000 no event"), headers: { own: "kept" } };
    const huge = { key: "huge", value: bytes("x".repeat(100_000)) };
    await publish([first, bad, huge, last]);
    const store = new Store();
    const running = consume({ apply: store.apply });
    await waitUntil(() => store.stored.length === 2 && running.lag === 0);
    await waitUntil(() => letters.firsts().length === 2);
    const place = { "dead-letter-topic": generationEventsTopic, "dead-letter-partition": "0" };
    const why = { "dead-letter-reason": "undecodable", "dead-letter-group": group };
    expect(headersOf()).toEqual([
      { own: "kept", ...why, ...place, "dead-letter-offset": "1" },
      { ...why, ...place, "dead-letter-offset": "2", "dead-letter-cut-bytes": "100000" },
    ]);
    expect(letters.firsts()[0]).toMatchObject({ key: "odd", value: Buffer.from(bad.value) });
    expect(running).toMatchObject({ applied: 2, deadLettered: 2 });
  });

  test("quarantines what ended too long ago, and nothing younger", async () => {
    const clock = new ManualClock(Date.now());
    const old = sampleEvent({ accountId, endedAtMs: clock.nowMs() - 2 * hourMs - 1 });
    const young = sampleEvent({ accountId, endedAtMs: clock.nowMs() - 2 * hourMs });
    await publish([old, young].map(toEventMessage));
    const store = new Store();
    consume({ apply: store.apply, clock });
    await waitUntil(() => letters.firsts().length === 1 && store.stored.length === 1);
    expect(store.ids()).toEqual([young.eventId]);
    expect(headersOf()).toMatchObject([
      { "dead-letter-reason": "too_old", "dead-letter-event-id": old.eventId },
    ]);
  });

  test("quarantines what the store refuses for good", async () => {
    const sent = events(4);
    const refused = sent[2];
    await publish(sent.map(toEventMessage));
    const store = new Store();
    const running = consume({
      async apply(batch) {
        await store.apply(batch.filter((event) => event.eventId !== refused?.eventId));
        const own = batch.filter((event) => event.eventId === refused?.eventId);
        return own.map(({ eventId, revision }) => ({ eventId, revision, reason: "unknown account" }));
      },
    });
    await waitUntil(() => letters.firsts().length === 1 && store.stored.length === 3);
    expect(headersOf()).toMatchObject([
      { "dead-letter-reason": "unknown account", "dead-letter-event-id": refused?.eventId },
    ]);
    await waitUntil(() => running.applied === 3);
    expect(running.deadLettered).toBe(1);
  });

  test("finds the poison in the midst of a batch; everything else is applied in its order", async () => {
    const sent = events(21);
    const poison = new Set([sent[0], sent[10], sent[11], sent[20]].map((event) => event?.eventId));
    await publish(sent.map(toEventMessage));
    const store = new Store();
    const running = consume({
      async apply(batch) {
        if (batch.some(({ eventId }) => poison.has(eventId))) throw new BadEvents("bad");
        return store.apply(batch);
      },
    });
    const good = sent.map(({ eventId }) => eventId).filter((eventId) => !poison.has(eventId));
    await expect.poll(() => store.ids(), patience).toEqual(good);
    await waitUntil(() => running.deadLettered === 4 && letters.firsts().length === 4);
    expect(headersOf().map(({ "dead-letter-event-id": eventId }) => eventId)).toEqual([...poison]);
    expect(new Set(reasons())).toEqual(new Set(["poison"]));
    expect(running.applied).toBe(17);
  });

  test("tries again while the store is away, without going on or quarantining", async () => {
    const sent = events(6);
    await publish(sent.map(toEventMessage));
    const store = new Store();
    let failures = 0;
    const running = consume({
      maxBatchMessages: 2,
      async apply(batch) {
        const away = failures < 3 && batch.some(({ eventId }) => eventId === sent[2]?.eventId);
        if (!away) return store.apply(batch);
        failures += 1;
        throw new StoreAway("away");
      },
    });
    await expect.poll(() => store.ids(), patience).toEqual(sent.map(({ eventId }) => eventId));
    expect(failures).toBe(3);
    await waitUntil(() => running.lag === 0);
    expect(running).toMatchObject({ applied: 6, deadLettered: 0 });
  });

  test("a store that goes away while the poison is looked for gets the whole batch again", async () => {
    const sent = events(8);
    const [, poison] = sent;
    await publish(sent.map(toEventMessage));
    const store = new Store();
    let failures = 0;
    consume({
      async apply(batch) {
        if (batch.some(({ eventId }) => eventId === poison?.eventId)) throw new BadEvents("bad");
        if (store.stored.length > 1 && failures === 0) {
          failures += 1;
          throw new StoreAway("away");
        }
        return store.apply(batch);
      },
    });
    await waitUntil(() => letters.firsts().length > 0);
    expect(failures).toBe(1);
    const ids = sent.filter((event) => event !== poison).map(({ eventId }) => eventId);
    expect([...new Set(store.ids())]).toEqual(ids);
    expect(store.ids().indexOf(sent[0]?.eventId ?? "", 1)).toBeGreaterThan(0);
    expect(letters.firsts()).toHaveLength(1);
  });

  test("does not go on while the dead-letter topic takes nothing", async () => {
    const [before, after] = events(2);
    if (before === undefined || after === undefined) throw new Error("unreachable");
    let failures = 0;
    const failing: Pick<Bus, "consume" | "retentionMs" | "send"> = {
      consume: (options) => bus.consume(options),
      retentionMs: (...given) => bus.retentionMs(...given),
      async send(...given) {
        failures += 1;
        if (failures <= 2) throw new Error("the bus is away");
        await bus.send(...given);
      },
    };
    await publish([toEventMessage(before), text("k", "no event"), toEventMessage(after)]);
    const store = new Store();
    const failuresBefore: number[] = [];
    const apply: EventConsumerOptions["apply"] = (batch) => {
      failuresBefore.push(failures);
      return store.apply(batch);
    };
    const running = consume({ bus: failing, apply, maxBatchMessages: 2 });
    await expect.poll(() => store.ids(), patience).toEqual([before.eventId, after.eventId]);
    expect(failuresBefore).toEqual([0, 3]);
    await waitUntil(() => letters.firsts().length === 1);
    expect(running.deadLettered).toBe(1);
    expect(failures).toBe(3);
  });

  test("nothing is lost or done twice by stopping and starting again", async () => {
    const sent = events(40);
    const store = new Store();
    const half = sent.slice(0, 20);
    await publish(half.map(toEventMessage));
    const first = consume({ apply: store.apply, maxBatchMessages: 3 });
    await waitUntil(() => store.stored.length > 5);
    await first.stop();
    await publish(sent.slice(20).map(toEventMessage));
    consume({ apply: store.apply });
    await expect.poll(() => store.ids(), patience).toEqual(sent.map(({ eventId }) => eventId));
    expect(first.connected).toBe(false);
  });

  test("refuses a topic that keeps messages longer than copies are known", async () => {
    const lines: { level: string; msg: string }[] = [];
    const write = (line: string) => void lines.push(JSON.parse(line));
    const log = createLog({ name: "test", level: "fatal", destination: { write } });
    await publish(events(1).map(toEventMessage));
    const store = new Store();
    const running = consume({ apply: store.apply, maxAgeMs: hourMs - 1, log });
    const error = await running.failed;
    expect(error).toBeInstanceOf(StartError);
    expect(error.message).toContain(`${hourMs} ms`);
    expect(lines).toMatchObject([{ level: "fatal", msg: "events can't be consumed" }]);
    expect(running).toMatchObject({ connected: false, lag: undefined });
    expect(store.stored).toEqual([]);
    expect(
      await given.database.selectFrom("consumer_group").select("id").where("name", "=", group).execute(),
    ).toEqual([]);
  });

  test("waits for a bus that is away, and can be stopped meanwhile", async () => {
    const nowhere = createPostgresBus({ url: "postgres://nobody@127.0.0.1:1/none", log: silentLog });
    const running = consume({ bus: nowhere, apply: new Store().apply });
    expect(running).toMatchObject({ connected: false, lag: undefined, applied: 0, deadLettered: 0 });
    await running.stop();
    await nowhere.close();
  });
});

/** Keeps what it is given. */
class Store {
  readonly stored: GenerationEvent[] = [];
  readonly sizes: number[] = [];

  readonly apply = async (events: readonly GenerationEvent[]) => {
    if (events.length === 0) throw new Error("nothing to apply");
    this.sizes.push(events.length);
    this.stored.push(...events);
    return [];
  };

  ids(): readonly string[] {
    return this.stored.map(({ eventId }) => eventId);
  }
}
