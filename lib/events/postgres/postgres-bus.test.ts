import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { silentLog } from "../../runtime/log.ts";
import { describeBus } from "../bus.suite.ts";
import { PublishError } from "../bus.ts";
import { BusStage, bytes, patience, patiently, text } from "../bus-stage.suite.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./bus-database.suite.ts";
import { createPostgresBus } from "./postgres-bus.ts";

const open = async () => {
  const { url, close } = await openBusDatabase();
  return { open: () => createPostgresBus({ url, log: silentLog }), close };
};

describeBus("the bus on PostgreSQL", open, { partitions: false });

describe("the bus on PostgreSQL", { timeout: 60_000 }, () => {
  let given: BusDatabaseUnderTest;
  let stage: BusStage;

  beforeEach(async () => {
    given = await openBusDatabase();
    stage = new BusStage({
      open: () => createPostgresBus({ url: given.url, log: silentLog, lookMs: 100 }),
      close: given.close,
    });
  });
  afterEach(async () => {
    await stage.clear();
    await given.close();
  });

  test("appending from many connections leaves no gap that a reader could pass over", async () => {
    const { topic, bus } = await stage.topic({});
    const reader = stage.read(stage.open(), { topic, maxBatchMessages: 7 });
    const senders = Array.from({ length: 6 }, (_, own) => ({
      sender: stage.open(),
      bodies: Array.from({ length: 100 }, (_, index) => `${own} ${index}`),
    }));
    await Promise.all(
      senders.map(async ({ sender, bodies }) => {
        for (const body of bodies) await sender.send(topic, [text("a", body), text("b", body)], patiently());
      }),
    );
    await bus.send(topic, [text("a", "end")], patiently());
    await waitUntil(() => reader.texts().includes("end"));
    const offsets = reader.firsts().map(({ offset }) => offset);
    expect(offsets).toEqual(Array.from({ length: 600 * 2 + 1 }, (_, index) => BigInt(index)));
    for (const key of ["a", "b"]) {
      const ofKey = reader.textsByKey()[key] ?? [];
      for (const [own, { bodies }] of senders.entries()) {
        expect(ofKey.filter((body) => body.startsWith(`${own} `))).toEqual(bodies);
      }
    }
  });

  test("the instants of a topic never go back", async () => {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const ahead = new Date(Date.now() + 60_000);
    await stage.send(bus, topic, ["1"]);
    await given.database.updateTable("topic").set({ appended_at: ahead }).execute();
    await stage.send(bus, topic, ["2"]);
    const reader = stage.read(bus, { topic });
    await waitUntil(() => reader.texts().length === 2);
    expect(reader.messages[1]?.appendedAtMs).toBe(ahead.getTime());
  });

  test("a message of another process is announced", async () => {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    // Which looks for nothing by itself within the time of a test.
    const patient = createPostgresBus({ url: given.url, log: silentLog });
    try {
      const reader = stage.read(patient, { topic });
      for (const body of ["1", "2", "3"]) {
        await stage.send(bus, topic, [body]);
        await waitUntil(() => reader.texts().includes(body));
      }
      await reader.leave();
    } finally {
      await patient.close();
    }
  });

  test("a message whose announcement got lost is found", async () => {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const reader = stage.read(bus, { topic });
    await stage.send(bus, topic, ["announced"]);
    await waitUntil(() => reader.texts().length === 1);
    await given.database.transaction().execute(async (transaction) => {
      const { id } = await transaction
        .updateTable("topic")
        .set({ next_offset: 2n })
        .returning("id")
        .executeTakeFirstOrThrow();
      const row = { key: Buffer.from("k"), value: Buffer.from("silent"), headers: "{}" };
      const place = { topic_id: id, message_offset: 1n, appended_at: new Date() };
      await transaction
        .insertInto("log")
        .values({ ...place, ...row })
        .execute();
    });
    await expect.poll(() => reader.texts(), patience).toEqual(["announced", "silent"]);
  });

  test("an announcement that is not true, and messages that vanished, do no harm", async () => {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const reader = stage.read(bus, { topic });
    await stage.send(bus, topic, ["1"]);
    await waitUntil(() => reader.texts().length === 1 && reader.consumer.lag === 0);
    const { id } = await given.database.selectFrom("topic").select("id").executeTakeFirstOrThrow();
    await sql`SELECT pg_notify('media_gateway_bus', ${`${id}:1000 nonsense`})`.execute(given.database);
    await stage.send(bus, topic, ["2"]);
    await waitUntil(() => reader.texts().length === 2 && reader.consumer.lag === 0);
    await given.database.updateTable("topic").set({ next_offset: 1000n }).execute();
    await waitUntil(() => (reader.consumer.lag ?? 0) > 0);
    await stage.send(bus, topic, ["3"]);
    await expect.poll(() => reader.texts(), patience).toEqual(["1", "2", "3"]);
    expect(reader.messages.at(-1)?.offset).toBe(1000n);
    await waitUntil(() => reader.consumer.lag === 0);
  });

  test("a batch is bounded in bytes too", async () => {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const value = bytes("x".repeat(1_000_000));
    const sent = Array.from({ length: 12 }, () => ({ key: "k", value }));
    for (const message of sent) await bus.send(topic, [message], patiently());
    const reader = stage.read(bus, { topic });
    await waitUntil(() => reader.firsts().length === sent.length);
    for (const { messages } of reader.batches) expect(messages.length).toBeLessThanOrEqual(5);
    expect(reader.batches[0]?.messages.length).toBeGreaterThan(1);
  });

  test("a topic's name and its figures are checked", async () => {
    const bus = stage.open();
    const settings = stage.settings({});
    for (const bad of [{ name: "a b" }, { name: "" }, { retentionMs: 0 }]) {
      await expect(bus.ensureTopics([{ ...settings, ...bad }], patiently())).rejects.toThrow();
    }
    expect(await given.database.selectFrom("topic").selectAll().execute()).toEqual([]);
  });

  test("topics that two processes make at once are made once", async () => {
    const settings = stage.settings({ partitions: 3 });
    const states = await Promise.all(
      [1, 2, 3, 4].map(() => stage.open().ensureTopics([settings], patiently())),
    );
    expect(states.flat().filter(({ created }) => created)).toHaveLength(1);
    expect(states.flat().flatMap(({ differences }) => differences)).toEqual([]);
    expect(await given.database.selectFrom("topic").select("name").execute()).toHaveLength(1);
  });

  test("a database that is away fails what is asked, and is waited for by readers", async () => {
    const bus = createPostgresBus({ url: "postgres://nobody@127.0.0.1:1/none", log: silentLog });
    const reader = stage.read(bus, { topic: "topic" });
    const sent = bus.send("topic", [text("k", "v")], patiently());
    await expect(sent).rejects.toThrow("ECONNREFUSED");
    await expect(sent).rejects.not.toBeInstanceOf(PublishError);
    await expect(bus.retentionMs("topic", patiently())).rejects.toThrow();
    await expect(bus.ensureTopics([stage.settings({})], patiently())).rejects.toThrow();
    await expect(bus.seek({ topic: "t", group: "g", timestampMs: 0 }, patiently())).rejects.toThrow();
    expect(reader.consumer).toMatchObject({ connected: false, lag: undefined });
    await reader.leave();
    await bus.close();
    await expect(bus.send("topic", [text("k", "v")], patiently())).rejects.toThrow("closed");
  });

  test("a schema and a topic that are made later are waited for", async () => {
    const fresh = await openBusDatabase({ migrated: false });
    const bus = createPostgresBus({ url: fresh.url, log: silentLog });
    try {
      const settings = stage.settings({ partitions: 2 });
      const reader = stage.read(bus, { topic: settings.name });
      const early = bus.send(settings.name, [text("k", "early")], patiently());
      await expect(early).rejects.toThrow("does not exist");
      await expect(early).rejects.not.toBeInstanceOf(PublishError);
      expect(reader.consumer.connected).toBe(false);
      await fresh.migrate();
      await bus.ensureTopics([settings], patiently());
      await stage.send(bus, settings.name, ["1", "2"]);
      await expect.poll(() => reader.sorted(), patience).toEqual(["1", "2"]);
      await reader.leave();
    } finally {
      await bus.close();
      await fresh.close();
    }
  });
});
