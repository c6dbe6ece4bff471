import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sendMessages } from "../../test/support/kafka/send-messages.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type OutgoingMessage, PublishError, type TopicSettings } from "./bus.ts";
import { BusStage, type BusUnderTest, bytes, patience, patiently, text, textOf } from "./bus-stage.suite.ts";

const patienceOf = { timeoutMs: patience.timeout, intervalMs: patience.interval };
const testTimeoutMs = 180_000;
const needsPartitions = "a bus whose topics have partitions";

/** What a bus may lack. */
export interface BusTraits {
  /** That a topic has partitions, which members of a group share; else a group has one reader at a time. */
  readonly partitions: boolean;
}

/** The acceptance suite of a bus: what bus.ts promises, tried from outside. Called at the top level of a test. */
export function describeBus(name: string, open: () => Promise<BusUnderTest>, traits: BusTraits): void {
  describe(`${name} keeps the contract of a bus`, { timeout: testTimeoutMs }, () => {
    let given: BusUnderTest;
    let stage: BusStage;
    beforeAll(async () => {
      given = await open();
    }, testTimeoutMs);
    beforeEach(() => {
      stage = new BusStage(given);
    });
    afterEach(() => stage.clear(), testTimeoutMs);
    afterAll(() => given?.close(), testTimeoutMs);

    describeDelivery(() => stage, traits);
    describeGroups(() => stage);
    describeMembers(() => stage, traits);
    describeHandling(() => stage, traits);
    describeLeaving(() => stage);
    describeSeeking(() => stage);
    describeTopics(() => stage, traits);
    describeRefusals(() => stage);
  });
}

function describeDelivery(stage: () => BusStage, traits: BusTraits): void {
  test("every message arrives, those of a key in their order", async () => {
    const { topic, bus } = await stage().topic({ partitions: 3 });
    const reader = stage().read(bus, { topic });
    const keys = ["ann", "ben", "cid", "dora", "eve", "finn"];
    const sent = new Map(keys.map((key) => [key, [] as string[]]));
    for (let round = 0; round < 20; round += 1) {
      const messages = keys.flatMap((key) => [text(key, `${key} ${round}a`), text(key, `${key} ${round}b`)]);
      await sendMessages(bus, topic, messages, patiently());
      for (const { key, value } of messages) sent.get(key)?.push(textOf(value));
    }
    await expect.poll(() => reader.textsByKey(), patience).toEqual(Object.fromEntries(sent));
    const partitions = (key: string) => reader.messages.filter((message) => message.key === key);
    for (const key of keys) expect(new Set(partitions(key).map(({ partition }) => partition)).size).toBe(1);
    const used = new Set(reader.messages.map(({ partition }) => partition)).size;
    expect(used > 1).toBe(traits.partitions);
    reader.expectOrderedOffsets();
  });

  test("sends of several clients at once all arrive", async () => {
    const { topic, bus } = await stage().topic({ partitions: 2 });
    const clients = [bus, stage().open(), stage().open()];
    const reader = stage().read(stage().open(), { topic });
    const sent = clients.flatMap((_, client) =>
      Array.from({ length: 60 }, (_, index) => `${client}-${index}`),
    );
    await Promise.all(
      clients.map(async (client, own) => {
        const mine = sent.filter((body) => body.startsWith(`${own}-`));
        for (let at = 0; at < mine.length; at += 4) {
          const messages = mine.slice(at, at + 4).map((body) => text(`client ${own}`, body));
          await sendMessages(client, topic, messages, patiently());
        }
      }),
    );
    await expect.poll(() => [...reader.texts()].sort(), patience).toEqual([...sent].sort());
    for (const own of clients.keys()) {
      expect(reader.textsByKey()[`client ${own}`]).toEqual(sent.filter((body) => body.startsWith(`${own}-`)));
    }
    reader.expectOrderedOffsets();
  });

  test("keys, headers and binary values come as they went", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const reader = stage().read(bus, { topic });
    const sent: OutgoingMessage[] = [
      { key: "bytes", value: Uint8Array.from({ length: 256 }, (_, byte) => byte) },
      { key: "schlüssel ☂ 🎈", value: bytes("é\u0000\u{1f388}"), headers: { reason: "für ☂", empty: "" } },
      { key: "with \u0000", value: bytes("x"), headers: { "x-1": "a\u0000b\n", "x-2": '"\\{}' } },
      { key: "empty", value: new Uint8Array(0), headers: {} },
      { key: "large", value: randomBytes(900_000), headers: { a: "1" } },
    ];
    const beforeMs = Date.now();
    await sendMessages(bus, topic, sent, patiently());
    await waitUntil(() => reader.firsts().length === sent.length, patienceOf);
    for (const [index, message] of reader.firsts().entries()) {
      const { key, value, headers = {} } = sent[index] ?? text("", "");
      expect({ key: message.key, headers: message.headers }).toEqual({ key, headers });
      expect(Buffer.compare(message.value, value)).toBe(0);
      expect(message).toMatchObject({ topic, partition: 0 });
      expect(Math.abs(message.appendedAtMs - beforeMs)).toBeLessThan(testTimeoutMs);
    }
  });

  test("messages that together are larger than one may be are sent at once", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const reader = stage().read(bus, { topic });
    const sent = ["a", "b", "c", "d"].map((key) => ({ key, value: randomBytes(600_000) }));
    await sendMessages(bus, topic, sent, patiently());
    await expect.poll(() => reader.firsts().map(({ key }) => key), patience).toEqual(["a", "b", "c", "d"]);
  });

  test("sending nothing is no effort", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    await sendMessages(bus, topic, [], patiently());
    await sendMessages(bus, topic, [text("k", "only")], patiently());
    const reader = stage().read(bus, { topic });
    await expect.poll(() => reader.texts(), patience).toEqual(["only"]);
  });
}

function describeGroups(stage: () => BusStage): void {
  test("several groups each get everything, from the earliest message on", async () => {
    const { topic, bus } = await stage().topic({ partitions: 2 });
    await stage().send(bus, topic, ["early 1", "early 2"]);
    const first = stage().read(bus, { topic });
    await expect.poll(() => first.sorted(), patience).toEqual(["early 1", "early 2"]);
    await stage().send(bus, topic, ["late"]);
    const second = stage().read(stage().open(), { topic });
    const everything = ["early 1", "early 2", "late"];
    await expect.poll(() => [first.sorted(), second.sorted()], patience).toEqual([everything, everything]);
  });

  test("a group goes on where it was when its consumer comes again", async () => {
    const { topic, bus } = await stage().topic({ partitions: 2 });
    const group = stage().name("group");
    const first = stage().read(bus, { topic, group });
    await stage().send(bus, topic, ["1", "2", "3"]);
    await expect.poll(() => first.sorted(), patience).toEqual(["1", "2", "3"]);
    await first.leave();
    await stage().send(bus, topic, ["4", "5"]);
    const second = stage().read(stage().open(), { topic, group });
    await expect.poll(() => second.sorted(), patience).toEqual(["4", "5"]);
    expect(first.sorted()).toEqual(["1", "2", "3"]);
  });

  test("lag and connection are known", async () => {
    const { topic, bus } = await stage().topic({ partitions: 3 });
    await sendMessages(
      bus,
      topic,
      [1, 2, 3, 4, 5].map((number) => text("one key", String(number))),
      patiently(),
    );
    const gate = Promise.withResolvers<void>();
    const reader = stage().read(bus, { topic, maxBatchMessages: 2 }, () => gate.promise);
    await waitUntil(() => reader.batches.length > 0 && (reader.consumer.lag ?? 0) > 0, patienceOf);
    await waitUntil(() => reader.consumer.connected, patienceOf);
    gate.resolve();
    await waitUntil(() => reader.firsts().length === 5 && reader.consumer.lag === 0, patienceOf);
  });

  test("a consumer of an empty topic has no lag", async () => {
    const { topic, bus } = await stage().topic({ partitions: 2 });
    const reader = stage().read(bus, { topic });
    await waitUntil(() => reader.consumer.connected && reader.consumer.lag === 0, patienceOf);
  });
}

function describeMembers(stage: () => BusStage, traits: BusTraits): void {
  test("members share the partitions, and one that leaves hands its own over", async (context) => {
    if (!traits.partitions) context.skip(needsPartitions);
    const { topic, bus } = await stage().topic({ partitions: 4 });
    const group = stage().name("group");
    const first = stage().read(bus, { topic, group });
    const second = stage().read(stage().open(), { topic, group });
    await waitUntil(async () => {
      const round = await stage().round(bus, topic, [first, second]);
      const [one = [], two = []] = round;
      return one.length > 0 && two.length > 0 && one.length + two.length === 4 && one;
    }, patienceOf);
    await second.leave();
    await waitUntil(async () => {
      const [own = []] = await stage().round(bus, topic, [first, second]);
      return own.length === 4;
    }, patienceOf);
  });

  test("a member that leaves hands over to one that waits, which goes on behind it", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const group = stage().name("group");
    const first = stage().read(bus, { topic, group });
    await stage().send(bus, topic, ["1", "2"]);
    await waitUntil(() => first.texts().length === 2 && first.consumer.lag === 0, patienceOf);
    const second = stage().read(stage().open(), { topic, group });
    const third = stage().read(bus, { topic, group });
    await stage().send(bus, topic, ["3"]);
    const all = () => [...first.texts(), ...second.texts(), ...third.texts()];
    await waitUntil(() => all().includes("3"), patienceOf);
    await first.leave();
    await stage().send(bus, topic, ["4"]);
    await waitUntil(() => all().includes("4"), patienceOf);
    expect([...second.texts(), ...third.texts()].filter((text) => text === "1" || text === "2")).toEqual([]);
  });
}

function describeHandling(stage: () => BusStage, traits: BusTraits): void {
  test("what a handler rejects comes again, and nothing behind it before", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const bodies = Array.from({ length: 12 }, (_, index) => `message ${index}`);
    await stage().send(bus, topic, bodies, "one key");
    let failures = 0;
    const reader = stage().read(bus, { topic, maxBatchMessages: 4 }, async (batch) => {
      if (failures >= 3 || !batch.some(({ value }) => textOf(value) === "message 5")) return;
      failures += 1;
      throw new Error("not now");
    });
    await expect.poll(() => reader.texts(), patience).toEqual(bodies);
    expect(failures).toBe(3);
    let position = 0n;
    for (const { messages, failed } of reader.batches) {
      expect(messages[0]?.offset).toBeLessThanOrEqual(position);
      if (!failed) position = (messages.at(-1)?.offset ?? 0n) + 1n;
    }
  });

  test("a partition whose handler rejects does not hold up another", async (context) => {
    if (!traits.partitions) context.skip(needsPartitions);
    const { topic, bus } = await stage().topic({ partitions: 2 });
    const [stuck = "", free = ""] = await stage().keysOfTwoPartitions(bus, topic);
    const group = stage().name("group");
    await sendMessages(bus, topic, [text(stuck, "stuck")], patiently());
    const reader = stage().read(bus, { topic, group }, async (batch) => {
      if (batch.some(({ value }) => textOf(value) === "stuck")) throw new Error("never");
    });
    await waitUntil(() => reader.batches.some(({ failed }) => failed), patienceOf);
    await sendMessages(bus, topic, [text(free, "passes")], patiently());
    const handled = () => reader.batches.filter(({ failed }) => !failed).flatMap(({ messages }) => messages);
    await waitUntil(() => handled().some(({ value }) => textOf(value) === "passes"), patienceOf);
  });

  test("batches are of one partition, one at a time, and no larger than allowed", async () => {
    const { topic, bus } = await stage().topic({ partitions: 2 });
    const bodies = Array.from({ length: 100 }, (_, index) => String(index));
    await stage().send(bus, topic, bodies);
    const running = new Set<number>();
    const faults: string[] = [];
    const reader = stage().read(bus, { topic, maxBatchMessages: 7 }, async (batch) => {
      const partitions = new Set(batch.map(({ partition }) => partition));
      const [partition = -1] = partitions;
      if (partitions.size !== 1 || batch.length > 7) faults.push(`${batch.length} of ${[...partitions]}`);
      if (running.has(partition)) faults.push(`two at a time of ${partition}`);
      running.add(partition);
      await new Promise((resolve) => setImmediate(resolve));
      running.delete(partition);
    });
    await expect.poll(() => reader.sorted(), patience).toEqual([...bodies].sort());
    expect(faults).toEqual([]);
    expect(Math.max(...reader.batches.map(({ messages }) => messages.length))).toBeGreaterThan(1);
  });
}

function describeLeaving(stage: () => BusStage): void {
  test("leaving fires the signal, lets the running batch end and commits it", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const group = stage().name("group");
    await stage().send(bus, topic, ["1", "2", "3"]);
    const gate = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    let handled = false;
    const reader = stage().read(bus, { topic, group, maxBatchMessages: 2 }, async (_, signal) => {
      signal.addEventListener("abort", () => told.resolve());
      await gate.promise;
      handled = true;
    });
    await waitUntil(() => reader.batches.length === 1, patienceOf);
    const left = reader.leave().then(() => handled);
    await told.promise;
    expect(handled).toBe(false);
    gate.resolve();
    expect(await left).toBe(true);
    const count = reader.batches.length;
    const rest = ["1", "2", "3"].slice(reader.texts().length);
    const next = stage().read(stage().open(), { topic, group });
    await stage().send(bus, topic, ["4"]);
    await expect.poll(() => next.texts(), patience).toEqual([...rest, "4"]);
    expect(reader.batches).toHaveLength(count);
  });

  test("a batch given up on leaving comes again", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const group = stage().name("group");
    await stage().send(bus, topic, ["1", "2"]);
    const reader = stage().read(bus, { topic, group }, async (_, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw new Error("given up");
    });
    await waitUntil(() => reader.batches.length > 0, patienceOf);
    await reader.leave();
    const next = stage().read(bus, { topic, group });
    await expect.poll(() => next.texts(), patience).toEqual(["1", "2"]);
  });
}

function describeSeeking(stage: () => BusStage): void {
  test("a group without members goes on from an instant, back or ahead", async () => {
    const { topic, bus } = await stage().topic({ partitions: 2 });
    const group = stage().name("group");
    const reader = stage().read(bus, { topic, group });
    await stage().send(bus, topic, ["old 1", "old 2", "old 3"]);
    await waitUntil(() => reader.sorted().length === 3, patienceOf);
    const oldMs = Math.max(...reader.messages.map(({ appendedAtMs }) => appendedAtMs));
    await waitUntil(() => Date.now() > oldMs + 1);
    await stage().send(bus, topic, ["new 1", "new 2"]);
    await waitUntil(() => reader.sorted().length === 5, patienceOf);
    await expect(bus.seek({ topic, group, timestampMs: oldMs }, patiently())).rejects.toThrow();
    await reader.leave();
    await bus.seek({ topic, group, timestampMs: oldMs + 1 }, patiently());
    const again = stage().read(bus, { topic, group });
    await expect.poll(() => again.sorted(), patience).toEqual(["new 1", "new 2"]);
    await again.leave();
    await bus.seek({ topic, group, timestampMs: 0 }, patiently());
    const all = stage().read(bus, { topic, group });
    await expect.poll(() => all.sorted(), patience).toEqual(["new 1", "new 2", "old 1", "old 2", "old 3"]);
  });

  test("a group that is new can be put behind everything", async () => {
    const { topic, bus } = await stage().topic({ partitions: 2 });
    const group = stage().name("group");
    await stage().send(bus, topic, ["1", "2"]);
    await bus.seek({ topic, group, timestampMs: Date.now() + 60_000 }, patiently());
    await stage().send(bus, topic, ["3", "4"]);
    const reader = stage().read(bus, { topic, group });
    await expect.poll(() => reader.sorted(), patience).toEqual(["3", "4"]);
  });
}

function describeTopics(stage: () => BusStage, traits: BusTraits): void {
  const hourMs = 3_600_000;

  test("topics are made once, and what differs is reported and left", async () => {
    const bus = stage().open();
    const wanted = stage().settings({ partitions: 2, retentionMs: hourMs });
    const { name } = wanted;
    const ensure = (change: Partial<TopicSettings>) =>
      bus.ensureTopics([{ ...wanted, ...change }], patiently());
    expect(await ensure({})).toEqual([{ name, created: true, differences: [] }]);
    expect(await ensure({})).toEqual([{ name, created: false, differences: [] }]);
    const [fewer] = await ensure({ partitions: 1, retentionMs: 2 * hourMs });
    expect(fewer).toMatchObject({ name, created: false });
    expect(fewer?.differences).toHaveLength(traits.partitions ? 2 : 1);
    expect(await bus.retentionMs(name, patiently())).toBe(hourMs);
  });

  test("several topics at once, in their order", async () => {
    const bus = stage().open();
    const settings = [1, 2].map((partitions) => stage().settings({ partitions }));
    await bus.ensureTopics(settings.slice(1), patiently());
    const states = await bus.ensureTopics(settings, patiently());
    expect(states.map(({ name, created }) => [name, created])).toEqual(
      settings.map(({ name }, index) => [name, index === 0]),
    );
  });

  test("partitions are added and used", async (context) => {
    if (!traits.partitions) context.skip(needsPartitions);
    const settings = stage().settings({ partitions: 1 });
    const { name: topic } = settings;
    const bus = stage().open();
    await bus.ensureTopics([settings], patiently());
    const [state] = await bus.ensureTopics([{ ...settings, partitions: 3 }], patiently());
    expect(state).toEqual({ name: topic, created: false, differences: [] });
    const sender = stage().open();
    const reader = stage().read(stage().open(), { topic });
    const bodies = Array.from({ length: 40 }, (_, index) => String(index));
    await stage().send(sender, topic, bodies);
    await expect.poll(() => reader.sorted(), patience).toEqual([...bodies].sort());
    expect([...new Set(reader.messages.map(({ partition }) => partition))].sort()).toEqual([0, 1, 2]);
  });

  test("retention can be read, for ever included", async () => {
    const bus = stage().open();
    const [day, ever] = [{ retentionMs: 24 * hourMs }, { retentionMs: Number.POSITIVE_INFINITY }].map(
      (keep) => stage().settings(keep),
    );
    if (day === undefined || ever === undefined) throw new Error("unreachable");
    await bus.ensureTopics([day, ever], patiently());
    expect(await bus.retentionMs(day.name, patiently())).toBe(24 * hourMs);
    expect(await bus.retentionMs(ever.name, patiently())).toBe(Number.POSITIVE_INFINITY);
    await expect(bus.retentionMs(stage().name("none"), patiently())).rejects.toThrow();
  });
}

function describeRefusals(stage: () => BusStage): void {
  test("an unknown topic and a message that is too large are refused for good", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const nowhere = sendMessages(bus, stage().name("none"), [text("k", "v")], patiently());
    await expect(nowhere).rejects.toBeInstanceOf(PublishError);
    const large = { key: "k", value: randomBytes(1_100_000) };
    await expect(sendMessages(bus, topic, [large], patiently())).rejects.toBeInstanceOf(PublishError);
    await sendMessages(bus, topic, [text("k", "goes on")], patiently());
    const reader = stage().read(bus, { topic });
    await expect.poll(() => reader.texts(), patience).toEqual(["goes on"]);
  });

  test("a send whose signal has fired rejects and the bus goes on", async () => {
    const { topic, bus } = await stage().topic({ partitions: 1 });
    const reader = stage().read(bus, { topic });
    await expect(sendMessages(bus, topic, [text("k", "late")], AbortSignal.abort())).rejects.toThrow();
    await sendMessages(bus, topic, [text("k", "goes on")], patiently());
    await waitUntil(() => reader.texts().includes("goes on"), patienceOf);
  });
}
