import { afterEach, beforeEach, expect, test } from "vitest";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { createLog, silentLog } from "../../runtime/log.ts";
import { BusStage, patience } from "../bus-stage.suite.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./bus-database.suite.ts";
import { createPostgresBus } from "./postgres-bus.ts";

let given: BusDatabaseUnderTest;
let stage: BusStage;

beforeEach(async () => {
  given = await openBusDatabase();
  const open = () => createPostgresBus({ url: given.url, log: silentLog, retentionIntervalMs: 20 });
  stage = new BusStage({ open, close: given.close });
});

afterEach(async () => {
  await stage.clear();
  await given.close();
});

async function keep(retentionMs: bigint | null): Promise<void> {
  await given.database.updateTable("topic").set({ retention_ms: retentionMs }).execute();
}

async function storedOffsets(): Promise<bigint[]> {
  const rows = await given.database
    .selectFrom("log")
    .orderBy("message_offset")
    .select("message_offset")
    .execute();
  return rows.map(({ message_offset }) => message_offset);
}

test("old messages are deleted, in several steps, and young ones stay", async () => {
  const { topic, bus } = await stage.topic({ partitions: 1, retentionMs: 3_600_000 });
  const old = Array.from({ length: 2500 }, (_, index) => `old ${index}`);
  await stage.send(bus, topic, old);
  await given.database
    .updateTable("log")
    .set({ appended_at: new Date(Date.now() - 3_601_000) })
    .execute();
  await stage.send(bus, topic, ["young"]);
  await waitUntil(async () => (await storedOffsets()).length === 1);
  expect(await storedOffsets()).toEqual([2500n]);
  const reader = stage.read(bus, { topic });
  await expect.poll(() => reader.texts(), patience).toEqual(["young"]);
  await waitUntil(() => reader.consumer.lag === 0);
});

test("a group that has not read what is deleted goes on behind it and says so", async () => {
  const lines: { msg: string; messages?: number }[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const log = createLog({ name: "test", level: "error", destination: { write } });
  const losses = () =>
    lines.filter(({ msg }) => msg === "messages were deleted before the group had read them");
  const { topic, bus } = await stage.topic({ partitions: 1, retentionMs: Number.POSITIVE_INFINITY });
  const group = stage.name("group");
  const first = stage.read(bus, { topic, group });
  await stage.send(bus, topic, ["1"]);
  await expect.poll(() => first.texts(), patience).toEqual(["1"]);
  await first.leave();
  await stage.send(bus, topic, ["2", "3", "4"]);
  await keep(1n);
  await waitUntil(async () => (await storedOffsets()).length === 0);
  await keep(null);
  const watched = createPostgresBus({ url: given.url, log });
  try {
    const late = stage.read(watched, { topic, group });
    const fresh = stage.read(watched, { topic });
    await waitUntil(() => late.consumer.lag === 0 && fresh.consumer.lag === 0);
    await stage.send(bus, topic, ["5"]);
    await expect.poll(() => [late.texts(), fresh.texts()], patience).toEqual([["5"], ["5"]]);
    expect(losses()).toEqual([expect.objectContaining({ messages: 3 })]);
    await Promise.all([late.leave(), fresh.leave()]);
  } finally {
    await watched.close();
  }
});
