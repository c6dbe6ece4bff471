import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import type { RecordBilling, UsageRecordSummary } from "../../gen/media/usage/v1/usage_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { lostEvent, testUuid, usageEvent } from "../../test/support/services/usage-events.ts";
import { startTestUsageServer, type TestUsageServer } from "../../test/support/services/usage-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { listRecords } from "./admin-rpc.ts";
import { recordEvents } from "./record.ts";

const clock = new ManualClock(Date.parse("2030-01-10T12:00:00Z"));
const day = "2030-01-01";
let server: TestUsageServer;
let admin: Client<typeof UsageAdminService>;

beforeAll(async () => {
  server = await startTestUsageServer({ clock, retentionDays: 30 });
});

afterAll(() => server.close());

beforeEach(async () => {
  await sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(server.database);
  await sql`UPDATE retention SET kept_from = '1970-01-01'`.execute(server.database);
  admin = await server.admin();
});

async function list(from: string, to: string) {
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const batches: UsageRecordSummary[][] = [];
  const span = { from: timestampFromMs(fromMs), to: timestampFromMs(toMs) };
  for await (const { records } of admin.listUsageRecords(span)) batches.push(records);
  return batches;
}

async function issuePaths(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  return { reason: error?.reason, paths: error?.issues.map(({ path }) => path) };
}

describe("the records of a span of time", () => {
  test("are listed by id, from its first instant on and before its last", async () => {
    await server.record(
      usageEvent({ eventId: "gen-tts-b", ended: "2030-01-01T00:00:00Z", costNanoUsd: 8n }),
      usageEvent({ eventId: "gen-tts-a", ended: "2030-01-02T23:59:59.999Z", accountId: testUuid(2) }),
      lostEvent({ eventId: "gen-img-c", ended: "2030-01-01T23:59:59.999Z" }),
      usageEvent({ eventId: "gen-tts-early", ended: "2029-12-31T23:59:59.999Z" }),
      usageEvent({ eventId: "gen-tts-late", ended: "2030-01-03T00:00:00Z" }),
    );
    const [records, ...more] = await list("2030-01-01T00:00:00Z", "2030-01-03T00:00:00Z");
    expect(more).toEqual([]);
    expect(records?.map(({ $typeName: _name, ...record }) => record)).toEqual([
      { eventId: "gen-img-c", revision: 0, accountId: testUuid(1), costNanoUsd: 0n, date: "2030-01-01" },
      { eventId: "gen-tts-a", revision: 1, accountId: testUuid(2), costNanoUsd: 5n, date: "2030-01-02" },
      { eventId: "gen-tts-b", revision: 1, accountId: testUuid(1), costNanoUsd: 8n, date: "2030-01-01" },
    ]);
    expect(await list("2030-01-05T00:00:00Z", "2030-01-06T00:00:00Z")).toEqual([]);
  });

  test("have what a provider's bill can be compared with where that is asked for", async () => {
    const reported = { characters: 12n, costNanoUsd: 7n };
    await server.record(
      usageEvent({ eventId: "gen-tts-a", providerReport: reported }),
      usageEvent({ eventId: "gen-tts-b" }),
    );
    const span = {
      from: timestampFromMs(Date.parse("2030-01-01")),
      to: timestampFromMs(Date.parse("2030-01-02")),
    };
    const billings: (RecordBilling | undefined)[] = [];
    for await (const { records } of admin.listUsageRecords({ ...span, withBilling: true })) {
      billings.push(...records.map(({ billing }) => billing));
    }
    const { endpointId, providerSlug, model, byok, units, listPriceNanoUsd } = usageEvent({});
    const common = { endpointId, providerSlug, model, byok, listPriceNanoUsd };
    const inputCharacters = units?.inputCharacters ?? 0n;
    expect(billings[0]).toMatchObject({ ...common, inputCharacters, reported });
    expect(billings[1]).toMatchObject({ ...common, inputCharacters });
    expect(billings[1]?.reported).toBeUndefined();
  });

  test("come in batches of at most 1,000, ordered over all of them", async () => {
    const events = Array.from({ length: 2500 }, (_, index) => usageEvent({ eventId: `gen-tts-${index}` }));
    await server.record(...events);
    const batches = await list("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z");
    expect(batches.map(({ length }) => length)).toEqual([1000, 1000, 500]);
    const ids = batches.flat().map(({ eventId }) => eventId);
    expect(ids).toEqual(events.map(({ eventId }) => eventId).sort());
  });

  test("leave no transaction open when the reader goes away, cancelled or not", async () => {
    // More than sockets buffer.
    await sql`
      INSERT INTO record SELECT 'gen-tts-' || number, 1, ${testUuid(1)}, '2030-01-01T12:00:00Z', ${testUuid(100)}, '\\x00',
        ${testUuid(0)}, ${testUuid(0)}, 0, 0, 0, 0, 0, '' FROM generate_series(1, 150000) AS number`.execute(
      server.database,
    );
    const leaving = new AbortController();
    const [from, to] = [timestampFromMs(0), timestampFromMs(clock.nowMs())];
    // Without a deadline that ends the call by itself.
    const stream = admin.listUsageRecords({ from, to }, { signal: leaving.signal, timeoutMs: 600_000 });
    await stream[Symbol.asyncIterator]().next();
    const span = { from: new Date(0), to: new Date(clock.nowMs()), batchSize: 10 };
    await listRecords(server.database, span, leaving.signal).next();
    await waitUntil(async () => (await idleTransactions()) === 2);
    leaving.abort();
    await waitUntil(async () => (await idleTransactions()) === 0);
  });

  async function idleTransactions() {
    const { rows } = await sql<{ count: bigint }>`
      SELECT count(*) AS count FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle in transaction'`.execute(server.database);
    return Number(rows[0]?.count);
  }

  test("need both ends of the span", async () => {
    const empty = async (span: object) => {
      for await (const _answer of admin.listUsageRecords(span)) throw new Error("answered");
    };
    const refused = { reason: ErrorReason.INVALID_BODY };
    expect(await issuePaths(empty({}))).toEqual({ ...refused, paths: ["from", "to"] });
    const beyond = { seconds: 253_402_300_800n, nanos: 0 };
    expect(await issuePaths(empty({ from: { seconds: -1n, nanos: 0 }, to: beyond }))).toEqual({
      ...refused,
      paths: ["from", "to"],
    });
  });
});

describe("rebuilding a day", () => {
  beforeEach(async () => {
    await server.record(
      usageEvent(),
      usageEvent({ eventId: "gen-tts-2", byok: true, listPriceNanoUsd: 70n }),
      lostEvent({ eventId: "gen-tts-3", endpointId: testUuid(101) }),
      usageEvent({ eventId: "gen-tts-4", ended: "2030-01-02T00:00:00Z" }),
    );
  });

  async function rebuild(dryRun: boolean, fromDate = day, toDate = fromDate) {
    const { days } = await admin.rebuildActivity({ fromDate, toDate, dryRun });
    return days.map(({ date, complete, differingCells }) => [date, complete, differingCells]);
  }

  function cells() {
    return server.database.selectFrom("activity").selectAll().orderBy("day").orderBy("endpoint_id").execute();
  }

  test("finds nothing where roll-ups are what records add up to", async () => {
    const before = await cells();
    for (const dryRun of [true, false]) {
      expect(await rebuild(dryRun, "2029-12-31", "2030-01-02")).toEqual([
        ["2029-12-31", true, 0],
        ["2030-01-01", true, 0],
        ["2030-01-02", true, 0],
      ]);
    }
    expect(await cells()).toEqual(before);
  });

  test.for([
    ["a wrong sum", sql`UPDATE activity SET charged_nano_usd = charged_nano_usd + 1 WHERE requests = 2`, 1],
    ["a missing cell", sql`DELETE FROM activity WHERE requests = 2`, 1],
    ["an empty roll-up", sql`DELETE FROM activity`, 2],
    ["wrong times", sql`UPDATE activity SET last_ended_at = '2030-01-01T23:00:00Z'`, 2],
    ["a cell too many", sql`UPDATE activity SET key_hash = '\\x00' WHERE requests = 2`, 2],
  ] as const)("finds %s, mends it when told to, and touches no other day", async ([, damage, count]) => {
    const before = await cells();
    await damage.execute(server.database);
    const damaged = await cells();
    expect(await rebuild(true)).toEqual([[day, true, count]]);
    expect(await cells()).toEqual(damaged);
    expect(await rebuild(false)).toEqual([[day, true, count]]);
    expect(await rebuild(true)).toEqual([[day, true, 0]]);
    const mended = (await cells()).filter((cell) => cell.day === day && cell.requests > 0n);
    expect(mended).toEqual(before.filter((cell) => cell.day === day));
    const otherDay = (rows: Awaited<ReturnType<typeof cells>>) => rows.filter((cell) => cell.day !== day);
    expect(otherDay(await cells())).toEqual(otherDay(damaged));
  });

  /** Rebuilds the day, one cell of it being wrong, while events have changed that cell and wait to change another. */
  async function rebuildWhileRecording(...events: readonly GenerationEvent[]) {
    await sql`UPDATE activity SET requests = requests + 7 WHERE day = ${day} AND endpoint_id = ${testUuid(100)}`.execute(
      server.database,
    );
    const holder = await server.database.startTransaction().execute();
    await sql`SELECT FROM activity WHERE endpoint_id = ${testUuid(101)} FOR UPDATE`.execute(holder);
    const recording = recordEvents(server.database, events, new AbortController().signal);
    await waitForWaiting(1);
    const rebuilding = rebuild(false);
    await waitForWaiting(2);
    await holder.commit().execute();
    await Promise.all([recording, rebuilding]);
    expect((await rebuild(true)).map(([, , differing]) => differing)).toEqual([0]);
    return (await cells()).find((cell) => cell.day === day && cell.endpoint_id === testUuid(100));
  }

  test("waits for events of it under way, whose sums it would overwrite", async () => {
    const mended = await rebuildWhileRecording(
      usageEvent({ eventId: "gen-tts-5" }),
      usageEvent({ eventId: "gen-tts-6", endpointId: testUuid(101) }),
    );
    expect(mended).toMatchObject({ requests: 3n });
  });

  test("waits for events under way that a record of it gives way to", async () => {
    const elsewhere = { endpointId: testUuid(101), ended: "2030-01-02T00:00:00Z" };
    await server.record(
      lostEvent({ eventId: "gen-tts-5" }),
      usageEvent({ eventId: "gen-tts-6", ...elsewhere }),
    );
    const mended = await rebuildWhileRecording(usageEvent({ eventId: "gen-tts-5", ...elsewhere }));
    expect(mended).toMatchObject({ requests: 2n });
  });

  async function waitForWaiting(count: number) {
    await waitUntil(async () => {
      const { rows } = await sql<{ count: bigint }>`
        SELECT count(*) AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(server.database);
      return Number(rows[0]?.count) === count;
    });
  }

  test("leaves a day alone whose records are pruned, or may be", async () => {
    await sql`DELETE FROM activity`.execute(server.database);
    expect(await rebuild(false, "2029-12-10", "2029-12-11")).toEqual([
      ["2029-12-10", false, 0],
      ["2029-12-11", true, 0],
    ]);
    await sql`UPDATE retention SET kept_from = '2030-01-02'`.execute(server.database);
    expect(await rebuild(false, day, "2030-01-02")).toEqual([
      [day, false, 0],
      ["2030-01-02", true, 1],
    ]);
  });

  test.for([
    ["", "", ["from_date", "to_date"]],
    ["2030-01-32", "2030-01-02", ["from_date"]],
    ["2030-01-02", "2030-01-01", ["to_date"]],
    ["2030-01-01", "2030-02-01", ["to_date"]],
  ] as const)("from %s to %s is refused", async ([fromDate, toDate, paths]) => {
    const call = admin.rebuildActivity({ fromDate, toDate });
    expect(await issuePaths(call)).toEqual({ reason: ErrorReason.INVALID_BODY, paths });
  });
});
