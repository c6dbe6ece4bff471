import { sql, type Transaction } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import {
  createTestUsageDatabase,
  type TestUsageDatabase,
} from "../../test/support/services/usage-database.ts";
import { lostEvent, testUuid, usageEvent } from "../../test/support/services/usage-events.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type RecordedAmounts, recordedNames } from "./amounts.ts";
import { RowWriter } from "./convert.ts";
import { rebuildDay } from "./rebuild.ts";
import { recordEvents } from "./record.ts";
import type { UsageDatabase, UsageTables } from "./store.ts";

const day = "2030-01-01";
const { signal } = new AbortController();
let store: TestUsageDatabase;
let replicas: readonly [UsageDatabase, UsageDatabase];

beforeAll(async () => {
  store = await createTestUsageDatabase();
  replicas = [store.connect(2), store.connect(2)];
});

afterAll(() => store.close());

beforeEach(() => sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(store.database));

/** How many sessions of the database wait for another one. */
async function waiting(): Promise<number> {
  const { rows } = await sql<{ count: bigint }>`
    SELECT count(*) AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(store.database);
  return Number(rows[0]?.count);
}

/** Holds whoever would change a cell until `release`. */
async function holdCells() {
  const transaction = await store.database.startTransaction().execute();
  await sql`LOCK TABLE activity IN SHARE MODE`.execute(transaction);
  return { release: () => transaction.commit().execute() };
}

async function inTransaction<T>(work: (transaction: Transaction<UsageTables>) => Promise<T>): Promise<T> {
  return store.database.transaction().execute(work);
}

async function sums() {
  const { rows } = await sql<{ requests: bigint; charged: bigint }>`
    SELECT sum(requests)::bigint AS requests, sum(charged_nano_usd)::bigint AS charged FROM activity`.execute(
    store.database,
  );
  return rows[0];
}

async function expectRebuildEqual() {
  const compared = await rebuildDay(store.database, day, { firstDay: day, dryRun: true });
  expect(compared).toEqual({ day, complete: true, differingCells: 0, differingHourCells: 0 });
}

describe("two replicas with one generation", () => {
  const lost = lostEvent({ endpointId: testUuid(101), ended: `${day}T13:00:00Z` });
  const real = usageEvent({ ended: `${day}T12:00:00Z` });

  test.for<[string, readonly [GenerationEvent, GenerationEvent]]>([
    ["lost first", [lost, real]],
    ["real first", [real, lost]],
    ["the same twice", [real, real]],
  ])("count it once, %s, though the second begins before the first has ended", async ([, [early, late]]) => {
    const held = await holdCells();
    const first = recordEvents(replicas[0], [early], signal);
    await waitUntil(async () => (await waiting()) === 1);
    const second = recordEvents(replicas[1], [late], signal);
    await waitUntil(async () => (await waiting()) === 2);
    await held.release();
    expect(await Promise.all([first, second])).toEqual([[], []]);
    expect(await sums()).toEqual({ requests: 1n, charged: 5n });
    await expectRebuildEqual();
  });

  test("replace what was lost once, when both bring the real one", async () => {
    await recordEvents(store.database, [lost], signal);
    const held = await holdCells();
    const both = replicas.map((replica) => recordEvents(replica, [real], signal));
    await waitUntil(async () => (await waiting()) === 2);
    await held.release();
    await Promise.all(both);
    expect(await sums()).toEqual({ requests: 1n, charged: 5n });
    await expectRebuildEqual();
  });
});

describe("locks are taken in one order, so that nobody waits in a circle:", () => {
  const ids = ["gen-tts-a", "gen-tts-b"] as const;
  const [a, b] = ids.map((eventId) => usageEvent({ eventId }));
  const reversed = [b, a].filter((event) => event !== undefined);

  test("records that are inserted", async () => {
    const writer = new RowWriter();
    const insert = (transaction: Transaction<UsageTables>, event: GenerationEvent | undefined) => {
      const { row, bytes } = writer.toRowRecord(event ?? usageEvent());
      const { key_hash, event_id, revision, account_id, ended_at, endpoint_id, member_id, naming_id } = row;
      const owner = { account_id, endpoint_id, member_id, naming_id };
      const amounts = Object.fromEntries(recordedNames.map((name) => [name, row[name]])) as RecordedAmounts;
      const values = {
        event_id,
        revision,
        ended_at,
        ...owner,
        ...amounts,
        key_hash: Buffer.from(key_hash, "hex"),
        event: Buffer.from(bytes),
      };
      return transaction.insertInto("record").values(values).execute();
    };
    const recording = await inTransaction(async (transaction) => {
      await insert(transaction, a);
      const waitingForA = recordEvents(replicas[0], reversed, signal);
      await waitUntil(async () => (await waiting()) === 1);
      await insert(transaction, b);
      return { waitingForA };
    });
    expect(await recording.waitingForA).toEqual([]);
  });

  test("records that are replaced", async () => {
    // Not in their order on disk, in which a scan would meet them.
    for (const eventId of ids.toReversed())
      await recordEvents(store.database, [lostEvent({ eventId })], signal);
    const lock = (transaction: Transaction<UsageTables>, eventId: string) =>
      transaction
        .selectFrom("record")
        .select("event_id")
        .where("event_id", "=", eventId)
        .forUpdate()
        .execute();
    const recording = await inTransaction(async (transaction) => {
      await lock(transaction, ids[0]);
      const waitingForA = recordEvents(replicas[0], reversed, signal);
      await waitUntil(async () => (await waiting()) === 1);
      await lock(transaction, ids[1]);
      return { waitingForA };
    });
    expect(await recording.waitingForA).toEqual([]);
    expect(await sums()).toEqual({ requests: 2n, charged: 10n });
  });

  test("cells", async () => {
    const accounts = [testUuid(1), testUuid(2)] as const;
    const eventOf = (accountId: string, eventId: string) => usageEvent({ accountId, eventId });
    await recordEvents(
      store.database,
      accounts.map((id, index) => eventOf(id, `gen-tts-${index}`)),
      signal,
    );
    const lock = (transaction: Transaction<UsageTables>, accountId: string) =>
      transaction
        .selectFrom("activity")
        .select("day")
        .where("account_id", "=", accountId)
        .forUpdate()
        .execute();
    const recording = await inTransaction(async (transaction) => {
      await lock(transaction, accounts[0]);
      const backwards = [eventOf(accounts[1], "gen-tts-2"), eventOf(accounts[0], "gen-tts-3")];
      const waitingForFirst = recordEvents(replicas[0], backwards, signal);
      await waitUntil(async () => (await waiting()) === 1);
      await lock(transaction, accounts[1]);
      return { waitingForFirst };
    });
    expect(await recording.waitingForFirst).toEqual([]);
    expect(await sums()).toEqual({ requests: 4n, charged: 20n });
  });

  test("many batches of the same events and cells, backwards and forwards", async () => {
    const events = Array.from({ length: 60 }, (_, index) => {
      const init = {
        eventId: `gen-tts-${index}`,
        accountId: testUuid(index % 7),
        endpointId: testUuid(index % 5),
      };
      return [lostEvent(init), usageEvent({ ...init, endpointId: testUuid((index + 1) % 5) })];
    }).flat();
    const batches = Array.from({ length: 12 }, (_, index) => events.slice(index * 10, index * 10 + 40));
    await Promise.all([
      ...batches.map((batch) => recordEvents(replicas[0], batch, signal)),
      ...batches.map((batch) => recordEvents(replicas[1], batch.toReversed(), signal)),
    ]);
    expect(await sums()).toEqual({ requests: 60n, charged: 300n });
    await expectRebuildEqual();
  });
});
