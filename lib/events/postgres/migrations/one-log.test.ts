import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitUntil } from "../../../../test/support/wait-until.ts";
import { migrateToLatest } from "../../../database/migrate.ts";
import { silentLog } from "../../../runtime/log.ts";
import { BusStage, patiently, text, textOf } from "../../bus-stage.suite.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "../bus-database.suite.ts";
import { createPostgresBus } from "../postgres-bus.ts";
import { bus as partitionedBus } from "./0001-bus.ts";

const partitioned = { schema: "bus", migrations: { "0001-bus": partitionedBus } };
const topic = "some.topic";
const hourMs = 3_600_000;

let given: BusDatabaseUnderTest;
let stage: BusStage;

beforeEach(async () => {
  given = await openBusDatabase({ migrated: false });
  stage = new BusStage({
    open: () => createPostgresBus({ url: given.url, log: silentLog }),
    close: given.close,
  });
  await migrateToLatest(given.database, partitioned);
  await sql`INSERT INTO topic (name, retention_ms) VALUES (${topic}, ${hourMs})`.execute(given.database);
});

afterEach(async () => {
  await stage.clear();
  await given.close();
});

/** A partition as the release before left it: its messages but for the deleted ones, each at its second. */
async function writePartition(
  number: number,
  deleted: number,
  seconds: readonly number[],
): Promise<string[]> {
  const next = deleted + seconds.length;
  const { rows } = await sql<{
    id: number;
  }>`INSERT INTO partition (topic, number, first_offset, next_offset, appended_at)
    VALUES (${topic}, ${number}, ${deleted}, ${next}, now()) RETURNING id`.execute(given.database);
  const bodies: string[] = [];
  for (const [index, second] of seconds.entries()) {
    const body = `${number}/${deleted + index}`;
    const at = new Date(Date.now() - hourMs / 2 + second * 1000);
    await sql`INSERT INTO message (partition_id, message_offset, appended_at, key, headers, value)
      VALUES (${rows[0]?.id}, ${deleted + index}, ${at}, ${Buffer.from(`key ${number}`)}, '{"a":"b"}',
        ${Buffer.from(body)})`.execute(given.database);
    bodies.push(body);
  }
  return bodies;
}

/** A group that stood at these places in the partitions, and is held by a member that was killed. */
async function writeGroup(name: string, places: readonly number[]): Promise<void> {
  const { rows } = await sql<{
    id: number;
  }>`INSERT INTO consumer_group (topic, name) VALUES (${topic}, ${name})
    RETURNING id`.execute(given.database);
  const member = randomUUID();
  await sql`INSERT INTO member VALUES (${member}, ${rows[0]?.id}, now() + interval '10 s')`.execute(
    given.database,
  );
  for (const [number, place] of places.entries()) {
    await sql`INSERT INTO group_partition SELECT ${rows[0]?.id}, id, ${place}, ${member} FROM partition
      WHERE topic = ${topic} AND number = ${number}`.execute(given.database);
  }
}

test("a log in partitions becomes one, and each group goes on with exactly what it had not consumed", async () => {
  // Partitions whose messages came in turns; of the first two the oldest are deleted.
  const first = await writePartition(0, 3, [1, 4, 4, 9]);
  const second = await writePartition(1, 2, [2, 3, 8]);
  const third = await writePartition(2, 0, []);
  const all = [...first, ...second, ...third];
  expect(all).toEqual(["0/3", "0/4", "0/5", "0/6", "1/2", "1/3", "1/4"]);
  const unread: Record<string, readonly string[]> = {
    // Each is ahead of the other somewhere.
    ahead: ["0/6", "1/2", "1/3", "1/4"],
    behind: ["0/3", "0/4", "0/5", "0/6", "1/4"],
    done: [],
    // Was never on its second partition, which had been added meanwhile.
    partial: ["0/5", "0/6", "1/2", "1/3", "1/4"],
    never: all,
  };
  await writeGroup("ahead", [6, 0, 0]);
  await writeGroup("behind", [3, 4, 0]);
  await writeGroup("done", [7, 5, 0]);
  await writeGroup("partial", [5]);
  await given.migrate();
  const bus = stage.open();
  const settings = stage.settings({ name: topic, partitions: 3, retentionMs: hourMs });
  expect(await bus.ensureTopics([settings], patiently())).toEqual([
    { name: topic, created: false, differences: [] },
  ]);
  const readers = Object.keys(unread).map((group) => stage.read(bus, { topic, group, maxBatchMessages: 2 }));
  await waitUntil(() => readers.every(({ consumer }) => consumer.lag === 0));
  await bus.send(topic, [text("key 0", "new")], patiently());
  await waitUntil(() =>
    readers.every((reader) => reader.texts().includes("new") && reader.consumer.lag === 0),
  );
  for (const [index, expected] of Object.values(unread).entries()) {
    const reader = readers[index];
    expect([...(reader?.messages ?? [])].map(({ value }) => textOf(value)).sort()).toEqual(
      [...expected, "new"].sort(),
    );
    // In the order in which they had come, so those of a partition in theirs.
    const order = ["0/3", "1/2", "1/3", "0/4", "0/5", "1/4", "0/6", "new"];
    expect(reader?.texts()).toEqual(order.filter((body) => expected.includes(body) || body === "new"));
    reader?.expectOrderedOffsets();
  }
  expect(readers.at(-1)?.messages[0]).toMatchObject({ key: "key 0", headers: { a: "b" }, partition: 0 });
  // And having consumed it they are done with it for good.
  await Promise.all(readers.map((reader) => reader.leave()));
  await bus.send(topic, [text("key 1", "last")], patiently());
  const again = Object.keys(unread).map((group) => stage.read(stage.open(), { topic, group }));
  await waitUntil(() => again.every((reader) => reader.messages.length > 0 && reader.consumer.lag === 0));
  expect(again.map((reader) => reader.texts())).toEqual(again.map(() => ["last"]));
});

test("a topic without messages and a group without places go on", async () => {
  await writePartition(0, 5, []);
  await writeGroup("done", [5]);
  await writeGroup("fresh", []);
  await given.migrate();
  const bus = stage.open();
  const readers = ["done", "fresh"].map((group) => stage.read(bus, { topic, group }));
  await bus.send(topic, [text("k", "new")], patiently());
  await waitUntil(() => readers.every((reader) => reader.texts().includes("new")));
  for (const reader of readers) expect(reader.messages.map(({ offset }) => offset)).toEqual([5n]);
});
