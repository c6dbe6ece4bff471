import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { silentLog } from "../../runtime/log.ts";
import { describeBus } from "../bus.suite.ts";
import { PublishError } from "../bus.ts";
import { BusStage, bytes, patience, patiently, text } from "../bus-stage.suite.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./bus-database.suite.ts";
import { createPostgresBus } from "./postgres-bus.ts";

describeBus("the bus on PostgreSQL", async () => {
  const { url, close } = await openBusDatabase();
  return { open: () => createPostgresBus({ url, log: silentLog }), close };
});

describe("the bus on PostgreSQL", { timeout: 60_000 }, () => {
  let given: BusDatabaseUnderTest;
  let stage: BusStage;
  /** Too long to be of help within a test. */
  const longLeaseMs = 1_000_000;

  beforeEach(async () => {
    given = await openBusDatabase();
    stage = new BusStage({
      open: () => createPostgresBus({ url: given.url, log: silentLog, leaseMs: 1000 }),
      close: given.close,
    });
  });
  afterEach(async () => {
    await stage.clear();
    await given.close();
  });

  test("appending from many connections leaves no gap that a reader could pass over", async () => {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    const reader = stage.read(stage.open(), { topic, maxBatchMessages: 7 });
    const keys = ["a", "b", "c", "d"];
    const messages = (body: string) => keys.map((key) => text(key, body));
    const senders = Array.from({ length: 6 }, (_, own) => ({
      sender: stage.open(),
      bodies: Array.from({ length: 100 }, (_, index) => `${own} ${index}`),
    }));
    await Promise.all(
      // Each send goes to both partitions, and none waits for the one before.
      senders.flatMap(({ sender, bodies }) =>
        bodies.map((body) => sender.send(topic, messages(body), patiently())),
      ),
    );
    await bus.send(topic, messages("end"), patiently());
    await waitUntil(() => reader.texts().filter((body) => body === "end").length === keys.length);
    const seen = reader.firsts();
    expect(seen).toHaveLength((600 + 1) * keys.length);
    expect(new Set(seen.map(({ partition }) => partition))).toEqual(new Set([0, 1]));
    for (const partition of [0, 1]) {
      const offsets = seen.filter((message) => message.partition === partition).map(({ offset }) => offset);
      expect(offsets).toEqual(offsets.map((_, index) => BigInt(index)));
    }
    for (const key of keys) {
      const ofKey = reader.textsByKey()[key] ?? [];
      for (const [own, { bodies }] of senders.entries()) {
        expect(ofKey.filter((body) => body.startsWith(`${own} `))).toEqual(bodies);
      }
    }
  });

  test("the instants of a partition never go back", async () => {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const ahead = new Date(Date.now() + 60_000);
    await stage.send(bus, topic, ["1"]);
    await given.database.updateTable("partition").set({ appended_at: ahead }).execute();
    await stage.send(bus, topic, ["2"]);
    const reader = stage.read(bus, { topic });
    await waitUntil(() => reader.texts().length === 2);
    expect(reader.messages[1]?.appendedAtMs).toBe(ahead.getTime());
  });

  test("a key keeps its partition from release to release", async () => {
    const { topic, bus } = await stage.topic({ partitions: 6 });
    const reader = stage.read(bus, { topic });
    const partitions = {
      "00000000-0000-4000-8000-000000000000": 2,
      "7f1c2a8e-3b54-4d0a-9a3e-0c6f5d2b1e90": 2,
      ключ: 4,
    };
    const sent = Object.keys(partitions).map((key) => text(key, key));
    await bus.send(topic, sent, patiently());
    await waitUntil(() => reader.firsts().length === sent.length);
    const found = reader.firsts().map(({ key, partition }) => [key, partition]);
    expect(Object.fromEntries(found)).toEqual(partitions);
  });

  test("a message of another process is announced", async () => {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    const patient = createPostgresBus({ url: given.url, log: silentLog, leaseMs: longLeaseMs });
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
        .updateTable("partition")
        .set({ next_offset: 2n })
        .returning("id")
        .executeTakeFirstOrThrow();
      const row = { key: Buffer.from("k"), value: Buffer.from("silent"), headers: "{}" };
      const place = { partition_id: id, message_offset: 1n, appended_at: new Date() };
      await transaction
        .insertInto("message")
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
    const { id } = await given.database.selectFrom("partition").select("id").executeTakeFirstOrThrow();
    await sql`SELECT pg_notify('media_gateway_bus', ${`${id}:1000 nonsense group:x 99999:1`})`.execute(
      given.database,
    );
    await stage.send(bus, topic, ["2"]);
    await waitUntil(() => reader.texts().length === 2 && reader.consumer.lag === 0);
    await given.database.updateTable("partition").set({ next_offset: 1000n }).execute();
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
    for (const bad of [{ name: "a b" }, { name: "" }, { partitions: 0 }, { retentionMs: 0 }]) {
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
    expect(await given.database.selectFrom("partition").select("number").execute()).toHaveLength(3);
  });

  test("a database that is away is waited for until told otherwise", async () => {
    const bus = createPostgresBus({ url: "postgres://nobody@127.0.0.1:1/none", log: silentLog });
    const reader = stage.read(bus, { topic: "topic" });
    const sent = bus.send("topic", [text("k", "v")], AbortSignal.timeout(500));
    await expect(sent).rejects.toThrow(/timeout/i);
    await expect(sent).rejects.not.toBeInstanceOf(PublishError);
    await expect(bus.retentionMs("topic", patiently())).rejects.toThrow();
    await expect(bus.ensureTopics([stage.settings({})], patiently())).rejects.toThrow();
    await expect(bus.seek({ topic: "t", group: "g", timestampMs: 0 }, patiently())).rejects.toThrow();
    expect(reader.consumer).toMatchObject({ connected: false, lag: undefined });
    const waiting = bus.send("topic", [text("k", "v")], patiently());
    await Promise.all([expect(waiting).rejects.toThrow("closed"), reader.leave().then(() => bus.close())]);
    await expect(bus.send("topic", [text("k", "v")], patiently())).rejects.toThrow("closed");
  });

  test("a schema and a topic that are made later are waited for", async () => {
    const fresh = await openBusDatabase({ migrated: false });
    const bus = createPostgresBus({ url: fresh.url, log: silentLog, leaseMs: 500 });
    try {
      const settings = stage.settings({ partitions: 2 });
      const reader = stage.read(bus, { topic: settings.name });
      const early = bus.send(settings.name, [text("k", "early")], AbortSignal.timeout(300));
      await expect(early).rejects.toThrow(/timeout/i);
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
