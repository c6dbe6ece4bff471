import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { sendMessages } from "../../../test/support/kafka/send-messages.ts";
import { type Child, startChild } from "../../../test/support/processes/child.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { silentLog } from "../../runtime/log.ts";
import { BusStage, patience, patiently, text, textOf } from "../bus-stage.suite.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./bus-database.suite.ts";
import { createPostgresBus } from "./postgres-bus.ts";

const readerScript = fileURLToPath(new URL("./__fixtures__/bus-reader.ts", import.meta.url));

describe("a reader of a group", { timeout: 120_000 }, () => {
  let given: BusDatabaseUnderTest;
  let stage: BusStage;

  beforeEach(async () => {
    given = await openBusDatabase();
    stage = new BusStage({
      open: () => createPostgresBus({ url: given.url, log: silentLog }),
      close: given.close,
    });
  });
  afterEach(async () => {
    await stage.clear();
    await given.close();
  });

  /** A reader in a process of its own. */
  function startReader(topic: string, group: string): Child {
    const child = startChild(readerScript, { args: [given.url, topic, group] });
    onTestFinished(() => child.kill());
    return child;
  }

  const names = (what: string, count = 20) => Array.from({ length: count }, (_, index) => `${what} ${index}`);

  const place = async (group: string) => {
    const { database } = given;
    const row = database.selectFrom("consumer_group").select("next_offset").where("name", "=", group);
    return (await row.executeTakeFirst())?.next_offset;
  };

  test("that is killed is followed by another, and what it had not finished comes again", async () => {
    const { topic, bus } = await stage.topic({});
    const group = stage.name("group");
    const child = startReader(topic, group);
    await stage.send(bus, topic, names("early"));
    await waitUntil(() => names("early").every((name) => textsOf(child).includes(name)));
    await stage.send(bus, topic, ["hang"]);
    await waitUntil(() => textsOf(child).includes("hang"));
    const reader = stage.read(bus, { topic, group });
    await waitUntil(() => reader.consumer.connected);
    expect(reader.consumer.lag).toBeUndefined();
    await child.kill();
    await stage.send(bus, topic, names("late"));
    await waitUntil(() => [...names("late"), "hang"].every((name) => reader.texts().includes(name)));
    expect(reader.texts()).toEqual(["hang", ...names("late")]);
    await waitUntil(() => reader.consumer.lag === 0);
    expect(await place(group)).toBe(41n);
  });

  test("that was paused and lost its connection meanwhile moves nothing that its successor has moved", async () => {
    const { topic, bus } = await stage.topic({});
    const group = stage.name("group");
    const child = startReader(topic, group);
    await stage.send(bus, topic, ["hang"]);
    await waitUntil(() => textsOf(child).includes("hang"));
    process.kill(child.pid, "SIGSTOP");
    await cutConnections();
    await stage.send(bus, topic, ["more"]);
    const gate = Promise.withResolvers<void>();
    const reader = stage.read(stage.open(), { topic, group }, async (batch) => {
      if (batch.some(({ value }) => textOf(value) === "even more")) await gate.promise;
    });
    await waitUntil(async () => (await place(group)) === 2n);
    await stage.send(bus, topic, ["even more"]);
    await waitUntil(() => reader.texts().includes("even more"));
    process.kill(child.pid, "SIGCONT");
    await child.line((line) => line.includes("aborted"));
    expect(await child.stop()).toBe(0);
    expect(await place(group)).toBe(2n);
    gate.resolve();
    await waitUntil(async () => (await place(group)) === 3n);
    expect(reader.texts()).toEqual(["hang", "more", "even more"]);
  });

  test("gives up its batch when its connection is cut, and goes on when it has another", async () => {
    const { topic, bus } = await stage.topic({});
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
    await cutConnections();
    await waitUntil(() => gaveUp === 1);
    await waitUntil(() => reader.batches.some(({ failed }) => !failed));
    expect(reader.texts()).toEqual(["1", "2"]);
    await waitUntil(() => reader.consumer.connected && reader.consumer.lag === 0);
  });

  test("ends the batch that it is at before another begins", async () => {
    const { topic, bus } = await stage.topic({});
    const group = stage.name("group");
    const gate = Promise.withResolvers<void>();
    const first = stage.read(bus, { topic, group, maxBatchMessages: 5 }, () => gate.promise);
    await stage.send(bus, topic, names("early"));
    await waitUntil(() => first.batches.length === 1);
    const second = stage.read(stage.open(), { topic, group });
    await waitUntil(() => second.consumer.connected);
    const left = first.leave();
    await stage.send(bus, topic, names("late"));
    expect(second.batches).toEqual([]);
    gate.resolve();
    await left;
    await expect.poll(() => second.texts(), patience).toEqual([...names("early").slice(5), ...names("late")]);
    expect(first.texts()).toEqual(names("early").slice(0, 5));
  });

  test("goes on after its connections were cut, as do sends", async () => {
    const { topic, bus } = await stage.topic({ partitions: 2 });
    const reader = stage.read(stage.open(), { topic });
    const bodies = names("message", 60);
    for (const [index, body] of bodies.entries()) {
      if (index % 12 === 6) await cutConnections();
      await sendMessages(bus, topic, [text("a", body), text("b", body)], patiently());
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
