import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createTestDestinationDatabase,
  type TestDestinationDatabase,
} from "../../../test/support/services/destination-database.ts";
import { addDestination, age, queueEvents } from "../../../test/support/services/destination-replica.ts";
import { testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import { deleteDestination } from "../settings/destinations.ts";
import type { DestinationDatabase } from "../store.ts";
import { readBacklog } from "./backlog.ts";

const account_id = testUuid(1);
const url = "https://receiver.test/";
let testDatabase: TestDestinationDatabase;
let database: DestinationDatabase;

beforeAll(async () => {
  testDatabase = await createTestDestinationDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());

const set = (id: string, change: ReturnType<typeof sql>) =>
  sql`UPDATE lane SET ${change} WHERE destination_id = ${id}`.execute(database);

test("what waits is counted by why it does", async () => {
  expect(await readBacklog(database)).toEqual({
    enabledDestinations: 0,
    failingDestinations: 0,
    pausedDestinations: 0,
    pendingEvents: 0,
    oldestPendingMs: 0,
    oldestHealthyPendingMs: 0,
  });
  const add = () => addDestination(database, { account_id, url });
  const [well, failing, paused, disabled, deleted] = [
    await add(),
    await add(),
    await add(),
    await add(),
    await add(),
  ];
  await queueEvents(database, usageEvent({ eventId: "gen-tts-1", accountId: account_id }));
  await queueEvents(database, usageEvent({ eventId: "gen-tts-2", accountId: account_id }));
  await set(failing, sql`failures = 3`);
  await set(paused, sql`failures = 9, paused_at = now()`);
  await set(disabled, sql`enabled = false`);
  await deleteDestination(database, { id: deleted, accountId: account_id });
  for (const [id, ms] of [
    [well, 2000],
    [failing, 60_000],
    [paused, 3_600_000],
    [disabled, 7_200_000],
  ] as const) {
    await age(database, id, ms);
  }
  const backlog = await readBacklog(database);
  expect(backlog).toMatchObject({
    enabledDestinations: 3,
    failingDestinations: 1,
    pausedDestinations: 1,
    pendingEvents: 8,
  });
  const isAbout = (ms: number) => expect.toSatisfy((value: number) => value >= ms && value < ms + 50_000);
  expect(backlog).toMatchObject({
    oldestPendingMs: isAbout(60_000),
    oldestHealthyPendingMs: isAbout(2000),
  });
});
