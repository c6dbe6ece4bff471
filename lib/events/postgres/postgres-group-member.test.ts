import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type Child, startChild } from "../../../test/support/child.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { silentLog } from "../../runtime/log.ts";
import { BusStage, patience, patiently, text, textOf } from "../bus-stage.suite.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./bus-database.suite.ts";
import { createPostgresBus } from "./postgres-bus.ts";

const memberScript = fileURLToPath(new URL("./__fixtures__/bus-member.ts", import.meta.url));
const leaseMs = 1000;

describe("a member of a group", { timeout: 120_000 }, () => {
  let given: BusDatabaseUnderTest;
  let stage: BusStage;

  beforeEach(async () => {
    given = await openBusDatabase();
    stage = new BusStage({
      open: () => createPostgresBus({ url: given.url, log: silentLog, leaseMs }),
      close: given.close,
    });
  });
  afterEach(async () => {
    await stage.clear();
    await given.close();
  });

  /** A member in a process of its own. */
  function startMember(topic: string, group: string): Child {
    const child = startChild(memberScript, { args: [given.url, topic, group, String(leaseMs)] });
    onTestFinished(() => child.kill());
    return child;
  }

  const names = (what: string, count = 20) => Array.from({ length: count }, (_, index) => `${what} ${index}`);

  const positions = async () => {
    const rows = await given.database
      .selectFrom("group_partition")
      .innerJoin("partition", "partition.id", "group_partition.partition_id")
      .orderBy("partition.number")
      .select("group_partition.next_offset")
      .execute();
    return rows.map(({ next_offset }) => next_offset);
  };

  test("that is killed has its partitions taken over, and what it had not finished comes again", async () => {
    const { topic, bus } = await stage.topic({ partitions: 4 });
    const group = stage.name("group");
    const child = startMember(topic, group);
    await stage.send(bus, topic, names("early"));
    await waitUntil(() => names("early").every((name) => textsOf(child).includes(name)));
    await stage.send(bus, topic, ["hang"]);
    await waitUntil(() => textsOf(child).includes("hang"));
    const reader = stage.read(bus, { topic, group });
    await child.kill();
    await stage.send(bus, topic, names("late"));
    await waitUntil(() => [...names("late"), "hang"].every((name) => reader.texts().includes(name)));
    await waitUntil(() => reader.consumer.lag === 0);
    const ends = await given.database
      .selectFrom("partition")
      .orderBy("number")
      .select("next_offset")
      .execute();
    await waitUntil(async () =>
      (await positions()).every((place, index) => place === ends[index]?.next_offset),
    );
  });

  test("that was paused for too long gives up, and moves nothing any more", async () => {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const group = stage.name("group");
    const child = startMember(topic, group);
    await stage.send(bus, topic, ["hang"]);
    await waitUntil(() => textsOf(child).includes("hang"));
    const gate = Promise.withResolvers<void>();
    const reader = stage.read(bus, { topic, group }, () => gate.promise);
    process.kill(child.pid, "SIGSTOP");
    await waitUntil(() => reader.texts().includes("hang"));
    process.kill(child.pid, "SIGCONT");
    await child.line((line) => line.includes("aborted"));
    expect(await child.stop()).toBe(0);
    expect(await positions()).toEqual([0n]);
    gate.resolve();
    await waitUntil(async () => (await positions())[0] === 1n);
  });

  test("that can't renew its lease gives up its batch, and goes on when it can", async () => {
    const { topic, bus } = await stage.topic({ partitions: 1 });
    const group = stage.name("group");
    await stage.send(bus, topic, ["1", "2"]);
    let gaveUp = 0;
    const reader = stage.read(bus, { topic, group }, async (_, signal) => {
      if (gaveUp > 0) return;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      gaveUp += 1;
      throw new Error("given up");
    });
    await waitUntil(() => reader.batches.length === 1);
    await given.database.transaction().execute(async (transaction) => {
      await sql`LOCK TABLE member IN EXCLUSIVE MODE`.execute(transaction);
      await waitUntil(() => gaveUp === 1 && !reader.consumer.connected);
    });
    await waitUntil(() => reader.batches.some(({ failed }) => !failed));
    expect(reader.texts()).toEqual(["1", "2"]);
    await waitUntil(() => reader.consumer.connected && reader.consumer.lag === 0);
  });

  test("renews its lease without the lock of its group while nothing changes in that", async () => {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    const reader = stage.read(bus, { topic });
    await stage.send(bus, topic, names("early"));
    await waitUntil(() => reader.consumer.lag === 0 && reader.messages.length === 20);
    const lease = () => given.database.selectFrom("member").select("expires_at").executeTakeFirstOrThrow();
    await given.database.transaction().execute(async (transaction) => {
      await sql`SELECT FROM consumer_group FOR UPDATE`.execute(transaction);
      const { expires_at: first } = await lease();
      await waitUntil(async () => (await lease()).expires_at.getTime() > first.getTime() + leaseMs);
      expect(reader.consumer.connected).toBe(true);
      await stage.send(bus, topic, names("late"));
      await waitUntil(() => reader.messages.length === 40);
    });
  });

  test("ends the batch that it is at before it hands the partition over", async () => {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    const group = stage.name("group");
    const gate = Promise.withResolvers<void>();
    let aborted = false;
    const first = stage.read(bus, { topic, group }, async (_, signal) => {
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      await gate.promise;
    });
    await stage.send(bus, topic, names("early"));
    await waitUntil(() => new Set(first.messages.map(({ partition }) => partition)).size === 2);
    const second = stage.read(stage.open(), { topic, group });
    await waitUntil(() => second.consumer.connected);
    const members = () => given.database.selectFrom("member").select("id").execute();
    await waitUntil(async () => (await members()).length === 2);
    expect(second.batches).toEqual([]);
    gate.resolve();
    let rounds = 0;
    await waitUntil(async () => {
      await stage.send(bus, topic, names(`round ${rounds}`));
      rounds += 1;
      return second.messages.length > 0;
    });
    const handled = () => [...first.messages, ...second.messages];
    await waitUntil(() => handled().length >= 20 * (rounds + 1));
    expect(new Set(handled().map(({ value }) => textOf(value))).size).toBe(handled().length);
    expect(aborted).toBe(false);
  });

  test("goes on after its connections were cut, as do sends", async () => {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    const reader = stage.read(stage.open(), { topic });
    const bodies = names("message", 60);
    for (const [index, body] of bodies.entries()) {
      if (index % 12 === 6) await cutConnections();
      await bus.send(topic, [text("a", body), text("b", body)], patiently());
    }
    // A message may stand there twice when the connection broke before the answer.
    const arrived = () => Object.values(reader.textsByKey()).map((texts) => [...new Set(texts)]);
    await expect.poll(arrived, patience).toEqual([bodies, bodies]);
    reader.expectOrderedOffsets();
    await waitUntil(() => reader.consumer.connected && reader.consumer.lag === 0);
  });

  /** As a restart of the database would. */
  async function cutConnections(): Promise<void> {
    const { rows } = await sql<{ cut: boolean }>`
      SELECT pg_terminate_backend(pid) AS cut FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`.execute(given.database);
    expect(rows.length).toBeGreaterThan(0);
  }
});

function textsOf(child: Child): string[] {
  return child.lines.flatMap((line) => (JSON.parse(line) as { texts?: string[] }).texts ?? []);
}
