import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { readMasterKeys } from "../../../lib/secrets/master-keys.ts";
import { createSealer } from "../../../lib/secrets/seal.ts";
import {
  createTestDestinationDatabase,
  type TestDestinationDatabase,
} from "../../../test/support/services/destination-database.ts";
import {
  addDestination,
  queueEvents,
  quickLimits,
  testKeeper,
  testKeyText,
  waitingFor,
} from "../../../test/support/services/destination-replica.ts";
import { plainTypes } from "../../../test/support/services/destination-type.ts";
import { lostEvent, testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import {
  changeDestination,
  deleteDestination,
  getDestination,
  maxDestinationsOfType,
} from "../settings/destinations.ts";
import { resealDestinations } from "../settings/reseal.ts";
import type { DestinationDatabase } from "../store.ts";
import { type ClaimedBatch, claimBatches } from "./claim.ts";
import { keepReports } from "./outcome.ts";

const account_id = testUuid(1);
const patient = { timeoutMs: 25_000 };
let testDatabase: TestDestinationDatabase;
let database: DestinationDatabase;

beforeAll(async () => {
  testDatabase = await createTestDestinationDatabase();
  ({ database } = testDatabase);
  // Whoever queues, makes a destination or changes one waits, with all its work done and nothing committed, while a test holds the lock 7.
  await sql`CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END $$`.execute(database);
  for (const table of ["pending", "destination"]) {
    await sql`CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT OR UPDATE ON ${sql.table(table)}
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`.execute(database);
  }
});
afterAll(() => testDatabase.close());

beforeEach(async () => {
  await sql`TRUNCATE pending, known_event, delivery, lane, destination`.execute(database);
});

const event = (number: number) => usageEvent({ eventId: `gen-tts-${number}`, accountId: account_id });

/** Keeps what is queued, made or changed from then on from being committed until the result is called. */
async function holdCommits(): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const holding = database.connection().execute(async (connection) => {
    await sql`SELECT pg_advisory_lock(7)`.execute(connection);
    held.resolve();
    await end.promise;
    await sql`SELECT pg_advisory_unlock(7)`.execute(connection);
  });
  await held.promise;
  return () => {
    end.resolve();
    return holding;
  };
}

/** Resolves when so many transactions wait for a lock of another. */
async function blocked(count: number): Promise<void> {
  await waitUntil(async () => {
    const { rows } = await sql<{ waiting: bigint }>`
      SELECT count(*) AS waiting FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(database);
    return rows[0]?.waiting === BigInt(count);
  }, patient);
}

const claim = () =>
  claimBatches({
    database,
    limits: { ...quickLimits, leaseMs: 60_000 },
    healthy: 10,
    failing: 10,
    maxBatchEvents: () => 10,
  });

const idsOf = (batch: ClaimedBatch | undefined) => batch?.events.map(({ eventId }) => eventId);

function report(batch: ClaimedBatch | undefined) {
  if (batch === undefined) throw new Error("nothing was claimed");
  return keepReports({ database, limits: quickLimits }, [
    {
      destinationId: batch.destination_id,
      leaseId: batch.lease_id,
      version: batch.version,
      batchId: batch.batch_id,
      batchThrough: batch.batch_through,
      eventCount: batch.events.length,
      attempt: 1,
      isTaken: true,
      isFull: false,
      isTooLarge: false,
      status: 200,
      latencyMs: 1,
      cause: "",
      retryMs: 0,
    },
  ]);
}

test("what is queued while the batch before it is reported is due", async () => {
  const id = await addDestination(database, { account_id, url: "https://receiver.test/" });
  await queueEvents(database, event(1));
  const [batch] = (await claim()).batches;
  const release = await holdCommits();
  const queueing = queueEvents(database, event(2));
  await blocked(1);
  const reporting = report(batch);
  await blocked(2);
  await release();
  expect([await queueing, await reporting]).toEqual([1, ["kept"]]);
  expect(await waitingFor(database, id)).toEqual(["gen-tts-2/1"]);
  const [next] = await waitUntil(async () => {
    const { batches } = await claim();
    return batches.length > 0 ? batches : undefined;
  }, patient);
  expect(idsOf(next)).toEqual(["gen-tts-2"]);
});

test("what two replicas queue at once is visible in the order of its positions", async () => {
  await addDestination(database, { account_id, url: "https://receiver.test/" });
  const release = await holdCommits();
  const first = queueEvents(database, event(1));
  await blocked(1);
  const second = queueEvents(testDatabase.connect(2), event(2));
  await blocked(2);
  expect((await claim()).batches).toEqual([]);
  await release();
  await Promise.all([first, second]);
  const [batch] = (await claim()).batches;
  expect(idsOf(batch)).toEqual(["gen-tts-1", "gen-tts-2"]);
});

test("a batch is never formed of what a higher revision is about to replace", async () => {
  const id = await addDestination(database, { account_id, url: "https://receiver.test/" });
  await queueEvents(database, lostEvent({ eventId: "gen-tts-1", accountId: account_id }));
  const release = await holdCommits();
  const queueing = queueEvents(database, event(1));
  await blocked(1);
  expect((await claim()).batches).toEqual([]);
  await release();
  await queueing;
  const [batch] = (await claim()).batches;
  expect(batch?.events.map(({ revision }) => revision)).toEqual([1]);
  await report(batch);
  expect(await waitingFor(database, id)).toEqual([]);
});

test("a deletion that comes while something is queued ends delivery all the same", async () => {
  const id = await addDestination(database, { account_id, url: "https://receiver.test/" });
  const release = await holdCommits();
  const queueing = queueEvents(database, event(1));
  await blocked(1);
  const deleting = deleteDestination(database, { id, accountId: account_id });
  await blocked(2);
  await release();
  await Promise.all([queueing, deleting]);
  expect((await claim()).batches).toEqual([]);
  expect(await queueEvents(database, event(2))).toBe(0);
});

test("of two that are made at once where one more may be, one is refused", async () => {
  const add = (connection = database) =>
    addDestination(connection, { account_id, url: "https://receiver.test/" }).then(
      () => "made",
      (thrown: unknown) => DomainError.from(thrown).reason,
    );
  for (let count = 1; count < maxDestinationsOfType; count++) expect(await add()).toBe("made");
  const release = await holdCommits();
  const first = add();
  await blocked(1);
  const second = add(testDatabase.connect(2));
  await blocked(2);
  await release();
  expect(await Promise.all([first, second])).toEqual(["made", ErrorReason.COUNT_LIMIT_REACHED]);
});

test("what is changed while settings are sealed anew stays changed", async () => {
  const id = await addDestination(database, { account_id, url: "https://receiver.test/" });
  const settings = { url: "https://new.test/", method: "POST", headers: {} };
  const change = { sealed: testKeeper().seal(settings, { id, account_id }) };
  const newKeyText = `new:${Buffer.alloc(32, 8).toString("base64")}`;
  const keeper = testKeeper(plainTypes, createSealer(readMasterKeys(`${newKeyText},${testKeyText}`)));
  const release = await holdCommits();
  const changing = changeDestination(
    database,
    { id, version: 1 },
    change as Parameters<typeof changeDestination>[2],
  );
  await blocked(1);
  const resealing = resealDestinations(testDatabase.connect(2), keeper, new AbortController().signal);
  await blocked(2);
  await release();
  await changing;
  expect(await resealing).toEqual({ resealed: 1, current: 0, unreadable: 0 });
  const row = await getDestination(database, { id, accountId: account_id });
  expect([keeper.open(row), testKeeper().open(row)]).toEqual([settings, undefined]);
});
