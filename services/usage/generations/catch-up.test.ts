import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type GenerationEvent, Outcome } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import type { Repeating } from "../../../lib/runtime/repeat.ts";
import { ManualClock } from "../../../test/fakes/manual-clock.ts";
import { createServiceDatabase } from "../../../test/support/services/service-database.ts";
import type { TestUsageDatabase } from "../../../test/support/services/usage-database.ts";
import { lostEvent, testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { RowWriter } from "../convert.ts";
import { addDays, dayOfMs } from "../day.ts";
import { usageMigrations } from "../migrations.ts";
import { recordEvents } from "../record.ts";
import { giveUpDaysBefore } from "../retention.ts";
import { listSeries } from "../series.ts";
import type { UsageDatabase, UsageTables } from "../store.ts";
import { startCatchUp } from "./catch-up.ts";
import { listDay } from "./listing.ts";

const { signal } = new AbortController();
/** The migration asks the database's clock. */
const today = dayOfMs(Date.now());
let clock: ManualClock;
let store: TestUsageDatabase;
let database: UsageDatabase;
let catchUp: Repeating | undefined;

beforeEach(async () => {
  clock = new ManualClock(Date.parse(`${today}T12:00:00Z`));
  const { schema, migrations } = usageMigrations;
  const before = Object.entries(migrations).filter(([name]) => name < "0003");
  const steps = { schema, migrations: Object.fromEntries(before) };
  store = await createServiceDatabase<UsageTables>(steps, silentLog);
  database = store.database;
});

afterEach(async () => {
  await catchUp?.stop();
  await store.close();
});

/** Writes a record as the release before does, which knows nothing else. */
async function recordAsBefore(event: GenerationEvent): Promise<void> {
  const { row, naming, bytes } = new RowWriter().toRowRecord(event);
  await database
    .insertInto("naming")
    .values(naming)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await sql`
    INSERT INTO record (event_id, revision, account_id, ended_at, endpoint_id, key_hash, member_id, naming_id,
      prompt_tokens, completion_tokens, reasoning_tokens, charged_nano_usd, byok_list_nano_usd, event)
    VALUES (${row.event_id}, ${row.revision}, ${row.account_id}, ${row.ended_at.toISOString()}, ${row.endpoint_id},
      decode(${row.key_hash}, 'hex'), ${row.member_id}, ${row.naming_id}, 0, 0, 0, 0, 0, ${Buffer.from(bytes)})
    ON CONFLICT (event_id) DO UPDATE SET revision = excluded.revision, event = excluded.event`.execute(
    database,
  );
}

async function listed() {
  const rows = await database
    .selectFrom("listing")
    .select(["event_id", "revision"])
    .orderBy("event_id")
    .execute();
  return rows.map(({ event_id, revision }) => `${event_id} ${revision}`);
}

async function daysLeft(): Promise<string[]> {
  const rows = await database.selectFrom("catch_up").select("day").orderBy("day").execute();
  return rows.map(({ day }) => day);
}

function start() {
  catchUp = startCatchUp({ database, log: silentLog, clock, intervalMs: 5 });
}

test("records of before the migration are listed, and those that the release before still writes", async () => {
  const old = addDays(today, -3);
  await recordAsBefore(usageEvent({ eventId: "gen-tts-old", ended: `${old}T12:00:00Z` }));
  await migrateToLatest(database, usageMigrations);
  expect(await daysLeft()).toEqual([-3, -2, -1, 0, 1, 2].map((days) => addDays(today, days)));
  start();
  await waitUntil(async () => (await listed()).length === 1);
  const beside = { eventId: "gen-tts-beside", ended: `${today}T11:00:00Z` };
  await recordEvents(database, [lostEvent(beside)], signal);
  await recordAsBefore(usageEvent(beside));
  await recordAsBefore(usageEvent({ eventId: "gen-tts-late", ended: `${today}T11:00:00Z` }));
  await waitUntil(async () => (await listed()).join() === "gen-tts-beside 1,gen-tts-late 1,gen-tts-old 1");
  await waitUntil(async () => (await daysLeft())[0] === addDays(today, -1));
  clock.advance(4 * 86_400_000);
  await waitUntil(async () => (await daysLeft()).length === 0);
});

test("what is summed besides is counted of earlier records, and hours of the last days", async () => {
  const failed = { outcome: Outcome.FAILED, firstByteAt: timestampFromMs(Date.parse(`${today}T10:59:59Z`)) };
  const init = { ended: `${today}T11:00:00Z`, ...failed };
  await recordAsBefore(usageEvent(init));
  await migrateToLatest(database, usageMigrations);
  start();
  const [fromMs, toMs] = [Date.parse(today), Date.parse(today) + 86_400_000];
  const series = (step: "hour" | "day") =>
    listSeries(database, { accountId: testUuid(1), step, fromMs, toMs, groupBy: "none" });
  await waitUntil(async () => (await series("hour")).length === 1);
  const counts = { requests: 1n, errors: 1n, first_byte_100: 1n };
  expect(await series("hour")).toMatchObject([{ starts_at: new Date(init.ended), ...counts }]);
  expect(await series("day")).toMatchObject([{ starts_at: new Date(fromMs), ...counts }]);
});

test("a database without records has nothing to catch up on", async () => {
  await migrateToLatest(database, usageMigrations);
  expect(await daysLeft()).toEqual([]);
});

test("a day is listed whole in steps, by replicas that share it, and days that were given up are not", async () => {
  const old = addDays(today, -9);
  const ended = Date.parse(`${today}T00:00:00Z`);
  await recordAsBefore(usageEvent({ eventId: "gen-tts-given-up", ended: `${old}T12:00:00Z` }));
  const ids = Array.from({ length: 30 }, (_, index) => `gen-tts-${String(index).padStart(2, "0")}`);
  // Some end at the same instant, more of them than a step has.
  for (const [index, eventId] of ids.entries()) {
    await recordAsBefore(usageEvent({ eventId, ended: ended + Math.floor(index / 6) }));
  }
  await migrateToLatest(database, usageMigrations);
  await giveUpDaysBefore(database, addDays(today, -2));
  const replicas = [database, store.connect(2)];
  const counts = await Promise.all(replicas.map((replica) => listDay(replica, today, undefined, 4)));
  expect(await listed()).toEqual(ids.map((id) => `${id} 1`));
  expect(counts[0] ?? 0).toBeLessThanOrEqual(ids.length);
  start();
  await waitUntil(async () => (await daysLeft())[0] === addDays(today, -1));
  expect(await listed()).toHaveLength(ids.length);
});
