import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog, type Log, silentLog } from "../../lib/runtime/log.ts";
import type { Repeating } from "../../lib/runtime/repeat.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import {
  createTestUsageDatabase,
  type TestUsageDatabase,
} from "../../test/support/services/usage-database.ts";
import { lostEvent, usageEvent } from "../../test/support/services/usage-events.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { addDays, dayOfMs } from "./day.ts";
import { startPruner } from "./prune.ts";
import { rebuildDay } from "./rebuild.ts";
import { recordEvents } from "./record.ts";
import { giveUpDaysBefore, keptFrom, pruneStep } from "./retention.ts";
import type { UsageDatabase } from "./store.ts";

const clock = new ManualClock(Date.parse("2030-01-10T00:00:00Z"));
const { signal } = new AbortController();
let store: TestUsageDatabase;
let database: UsageDatabase;
let pruners: Repeating[];

beforeEach(async () => {
  store = await createTestUsageDatabase();
  database = store.database;
  pruners = [];
});

afterEach(async () => {
  for (const pruner of pruners) await pruner.stop();
  await store.close();
});

async function recordDays(...days: readonly string[]) {
  for (const day of days) {
    const events = Array.from({ length: 5 }, (_, index) =>
      usageEvent({ eventId: `gen-tts-${day}-${index}`, ended: `${day}T23:59:59.999Z` }),
    );
    expect(await recordEvents(database, events, signal)).toEqual([]);
  }
}

async function recordedDays() {
  const rows = await database
    .selectFrom("record")
    .select("ended_at")
    .distinct()
    .orderBy("ended_at")
    .execute();
  return rows.map(({ ended_at }) => ended_at.toISOString().slice(0, 10));
}

async function countedDays() {
  return database.selectFrom("activity").select(["day", "requests"]).orderBy("day").execute();
}

/** How many sessions of the database wait for another one. */
async function waiting(): Promise<number> {
  const { rows } = await sql<{ count: bigint }>`
    SELECT count(*) AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(database);
  return Number(rows[0]?.count);
}

function start(database: UsageDatabase, log: Log = silentLog) {
  const options = { database, log, clock, retentionDays: 7, intervalMs: 5, stepRecords: 2 };
  pruners.push(startPruner(options));
}

test("records that are older go, step by step and by any replica; roll-ups stay", async () => {
  const days = ["2030-01-01", "2030-01-02", "2030-01-03", "2030-01-10"] as const;
  await recordDays(...days);
  const counted = days.map((day) => ({ day, requests: 5n }));
  expect(await countedDays()).toEqual(counted);
  start(database);
  start(store.connect(2));
  await waitUntil(async () => (await recordedDays()).length === 2);
  expect(await recordedDays()).toEqual(["2030-01-03", "2030-01-10"]);
  expect(await keptFrom(database)).toBe("2030-01-03");
  clock.advance(86_400_000);
  await waitUntil(async () => (await recordedDays()).length === 1);
  expect(await countedDays()).toEqual(counted);
});

test("an event of a day that was given up is refused, and counted no second time", async () => {
  await recordDays("2030-01-01", "2030-01-02");
  await giveUpDaysBefore(database, "2030-01-02");
  const events = ["2030-01-01", "2030-01-02"].map((day) =>
    usageEvent({ eventId: `gen-tts-${day}-0`, ended: `${day}T23:59:59.999Z` }),
  );
  const refused = [
    { eventId: "gen-tts-2030-01-01-0", revision: 1, reason: "the records of its day are pruned" },
  ];
  expect(await recordEvents(database, events, signal)).toEqual(refused);
  expect(await pruneStep(database, 100)).toBe(5);
  expect(await recordEvents(database, events, signal)).toEqual(refused);
  expect(await countedDays()).toEqual([
    { day: "2030-01-01", requests: 5n },
    { day: "2030-01-02", requests: 5n },
  ]);
});

test("a day is given up once and for all", async () => {
  await giveUpDaysBefore(database, "2030-01-05");
  await giveUpDaysBefore(database, "2030-01-01");
  expect(await keptFrom(database)).toBe("2030-01-05");
});

test("a day is given up when the events of it that are under way have come in", async () => {
  const held = await database.startTransaction().execute();
  await sql`LOCK TABLE activity IN SHARE MODE`.execute(held);
  const recording = recordEvents(database, [usageEvent({ ended: "2030-01-01T12:00:00Z" })], signal);
  await waitUntil(async () => (await waiting()) === 1);
  const givingUp = giveUpDaysBefore(database, "2030-01-02");
  await waitUntil(async () => (await waiting()) === 2);
  expect(await keptFrom(database)).toBe("1970-01-01");
  await held.commit().execute();
  expect(await recording).toEqual([]);
  await givingUp;
  expect(await keptFrom(database)).toBe("2030-01-02");
  expect(await pruneStep(database, 10)).toBe(1);
});

test("an event that comes while its day is given up is refused", async () => {
  const held = await database.startTransaction().execute();
  await held.selectFrom("retention").selectAll().forUpdate().execute();
  const givingUp = giveUpDaysBefore(database, "2030-01-02");
  await waitUntil(async () => (await waiting()) === 1);
  const recording = recordEvents(database, [usageEvent({ ended: "2030-01-01T12:00:00Z" })], signal);
  await waitUntil(async () => (await waiting()) === 2);
  await held.commit().execute();
  await givingUp;
  expect(await recording).toHaveLength(1);
  expect([await recordedDays(), await countedDays()]).toEqual([[], []]);
});

test("hours go after eight days, and a correction to one that is gone changes its day alone", async () => {
  const [prunedDay, keptDay] = [-9, -8].map((days) => addDays(dayOfMs(clock.nowMs()), days));
  const pruned = { eventId: "gen-tts-pruned", ended: `${prunedDay}T12:00:00Z` };
  const kept = { eventId: "gen-tts-kept", ended: `${keptDay}T12:00:00Z` };
  await recordEvents(database, [lostEvent(pruned), lostEvent(kept)], signal);
  pruners.push(startPruner({ database, log: silentLog, clock, retentionDays: 400, intervalMs: 5 }));
  const hours = () => database.selectFrom("activity_hour").select(["hour", "charged_nano_usd"]).execute();
  await waitUntil(async () => (await hours()).length === 1);
  expect(await recordEvents(database, [usageEvent(pruned), usageEvent(kept)], signal)).toEqual([]);
  expect(await hours()).toEqual([{ hour: new Date(kept.ended), charged_nano_usd: 5n }]);
  const days = await database
    .selectFrom("activity")
    .select(["day", "charged_nano_usd"])
    .orderBy("day")
    .execute();
  expect(days).toEqual([prunedDay, keptDay].map((day) => ({ day, charged_nano_usd: 5n })));
  for (const { day } of days) {
    const found = await rebuildDay(database, day, { firstDay: day, dryRun: true });
    expect(found).toEqual({ day, complete: true, differingCells: 0, differingHourCells: 0 });
  }
});

test("a step deletes no more than it may", async () => {
  await recordDays("2030-01-01", "2030-01-02");
  await giveUpDaysBefore(database, "2030-01-02");
  expect([await pruneStep(database, 3), await pruneStep(database, 3), await pruneStep(database, 3)]).toEqual([
    3, 2, 0,
  ]);
  expect(await recordedDays()).toEqual(["2030-01-02"]);
});

test("a pruner goes on when it could do nothing for a while", async () => {
  await recordDays("2030-01-01");
  await database.schema.alterTable("retention").renameTo("away").execute();
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  start(database, createLog({ name: "usage", level: "warn", destination }));
  await waitUntil(() => lines.some((line) => line.includes("background task failed")));
  await database.schema.alterTable("away").renameTo("retention").execute();
  await waitUntil(async () => (await recordedDays()).length === 0);
});
