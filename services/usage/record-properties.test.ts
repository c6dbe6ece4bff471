import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GenerationEvent, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { hashApiKey } from "../../lib/identity/api-key.ts";
import {
  createTestUsageDatabase,
  type TestUsageDatabase,
} from "../../test/support/services/usage-database.ts";
import { lostEvent, testUuid, usageEvent } from "../../test/support/services/usage-events.ts";
import { type ActivityFilter, listActivity } from "./activity.ts";
import { amountNames, firstByteBoundsMs, firstByteMsOf, firstByteNames } from "./amounts.ts";
import { fromRowEvent } from "./convert.ts";
import { rebuildDay } from "./rebuild.ts";
import { recordEvents } from "./record.ts";
import { listSeries, type SeriesEntry } from "./series.ts";
import type { UsageDatabase } from "./store.ts";

const days = ["2030-01-01", "2030-01-02", "2030-01-03"] as const;
const window = { firstDay: days[0], lastDay: days[2] };
const accounts = [testUuid(1), testUuid(2)] as const;
const { signal } = new AbortController();
let store: TestUsageDatabase;
let replicas: readonly UsageDatabase[];

beforeAll(async () => {
  store = await createTestUsageDatabase();
  replicas = [store.connect(2), store.connect(2), store.connect(2)];
});

afterAll(() => store.close());

/** Where an event may be counted, and what it brings. */
const content = fc.record({
  day: fc.constantFrom(...days),
  hour: fc.integer({ min: 0, max: 23 }),
  endpoint: fc.integer({ min: 100, max: 101 }),
  key: fc.constantFrom("one", "two"),
  member: fc.constantFrom("", testUuid(7)),
  model: fc.constantFrom("acme/voice", "acme/speaker"),
  cost: fc.bigInt({ min: 0n, max: 9n }),
  byok: fc.boolean(),
  hasFailed: fc.boolean(),
  firstByteMs: fc.constantFrom(undefined, 0, 100, 101, 51_200, 51_201, 1e9),
});

/** The lost and the real event of each generation; `index` makes no two end at the same instant. */
const generations = fc
  .array(fc.record({ account: fc.constantFrom(...accounts), lost: content, real: content }), {
    minLength: 1,
    maxLength: 6,
  })
  .map((list) =>
    list.map(({ account, lost, real }, index) => [
      eventOf(lost, index, account, lostEvent),
      eventOf(real, index, account, usageEvent),
    ]),
  );

function eventOf(
  {
    day,
    hour,
    endpoint,
    key,
    member,
    model,
    cost,
    byok,
    hasFailed,
    firstByteMs,
  }: typeof content extends fc.Arbitrary<infer C> ? C : never,
  index: number,
  accountId: string,
  build: typeof usageEvent,
): GenerationEvent {
  const isReal = build === usageEvent;
  const ended = Date.parse(`${day}T${String(hour).padStart(2, "0")}:00:00Z`) + index;
  return build({
    eventId: `gen-tts-${index}`,
    accountId,
    ended,
    // It begins a second before its end.
    ...(firstByteMs === undefined ? {} : { firstByteAt: timestampFromMs(ended - 1000 + firstByteMs) }),
    endpointId: testUuid(endpoint),
    keyHash: hashApiKey(key),
    memberId: member,
    model,
    ...(isReal ? { byok, costNanoUsd: cost, listPriceNanoUsd: cost * 3n } : {}),
    ...(isReal && hasFailed ? { outcome: Outcome.FAILED } : {}),
  });
}

/** Batches, each with the replica that takes it: events in any order, any number of times. */
const deliveries = fc.array(
  fc.record({
    replica: fc.integer({ min: 0, max: 2 }),
    picks: fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
  }),
  { minLength: 1, maxLength: 8 },
);

/** The plain meaning: the highest revision of each generation that was delivered. */
function fold(events: readonly GenerationEvent[]): GenerationEvent[] {
  const standing = new Map<string, GenerationEvent>();
  for (const event of events) {
    if (event.revision > (standing.get(event.eventId)?.revision ?? -1)) standing.set(event.eventId, event);
  }
  return [...standing.values()].sort((a, b) => (a.eventId < b.eventId ? -1 : 1));
}

interface Expected {
  requests: bigint;
  charged: bigint;
  byok: bigint;
  prompt: bigint;
  model: string;
  namedAt: number;
}

/** What the items of a query should be, by day and endpoint. The name is the last real one's, if there is one. */
function expectedItems(standing: readonly GenerationEvent[], filter: ActivityFilter) {
  const items = new Map<string, Expected>();
  for (const event of standing) {
    const endedMs = Number(event.endedAt?.seconds) * 1000 + Number(event.endedAt?.nanos) / 1e6;
    const day = new Date(endedMs).toISOString().slice(0, 10);
    if (event.accountId !== filter.accountId || day < filter.firstDay || day > filter.lastDay) continue;
    if (filter.keyHash !== undefined && event.keyHash !== filter.keyHash) continue;
    if (filter.memberId !== undefined && event.memberId !== filter.memberId) continue;
    const key = `${day} ${event.endpointId}`;
    const nothing = { requests: 0n, charged: 0n, byok: 0n, prompt: 0n, model: "", namedAt: 0 };
    const item = items.get(key) ?? nothing;
    item.requests += 1n;
    item.charged += event.costNanoUsd;
    item.byok += event.byok ? event.listPriceNanoUsd : 0n;
    item.prompt += event.tokens?.prompt ?? 0n;
    if (event.revision === 1 && endedMs > item.namedAt)
      Object.assign(item, { model: event.model, namedAt: endedMs });
    items.set(key, item);
  }
  return items;
}

async function checkActivity(standing: readonly GenerationEvent[], filter: ActivityFilter) {
  const entries = await listActivity(store.database, filter);
  const expected = expectedItems(standing, filter);
  expect(entries.map(({ day, endpoint_id }) => `${day} ${endpoint_id}`).sort()).toEqual(
    [...expected.keys()].sort(),
  );
  for (const entry of entries) {
    const item = expected.get(`${entry.day} ${entry.endpoint_id}`);
    const { requests, charged_nano_usd: charged, byok_list_nano_usd: byok, prompt_tokens: prompt } = entry;
    const model = item?.model === "" ? "" : entry.model;
    expect({ requests, charged, byok, prompt, model }).toEqual({ ...item, namedAt: undefined });
  }
  return entries;
}

async function deliver(
  events: readonly GenerationEvent[],
  batches: readonly { replica: number; picks: number[] }[],
) {
  const delivered: GenerationEvent[] = [];
  await Promise.all(
    replicas.map(async (replica, number) => {
      for (const { picks } of batches.filter((batch) => batch.replica === number)) {
        const batch = picks.flatMap((pick) => events[pick % events.length] ?? []);
        delivered.push(...batch);
        expect(await recordEvents(replica, batch, signal)).toEqual([]);
      }
    }),
  );
  return delivered;
}

/** The sums of a series over all its points, and the plain meaning of them. */
async function checkSeries(standing: readonly GenerationEvent[], accountId: string) {
  const [fromMs, toMs] = [Date.parse(days[0]), Date.parse(days[2]) + 86_400_000];
  for (const groupBy of ["none", "model", "provider", "key", "member"] as const) {
    const series = { accountId, fromMs, toMs, groupBy };
    const [hours, whole] = await Promise.all(
      (["hour", "day"] as const).map((step) => listSeries(store.database, { ...series, step })),
    );
    expect(byDayAndGroup(hours ?? [])).toEqual(byDayAndGroup(whole ?? []));
    if (groupBy !== "none") continue;
    const own = standing.filter((event) => event.accountId === accountId);
    const sumOf = (name: (typeof amountNames)[number]) =>
      (hours ?? []).reduce((sum, point) => sum + point[name], 0n);
    const count = (is: (event: GenerationEvent) => boolean) => BigInt(own.filter(is).length);
    expect(sumOf("errors")).toBe(count(({ outcome }) => outcome !== Outcome.SUCCEEDED));
    for (const [index, name] of firstByteNames.entries()) {
      const [above, most] = [bounds[index] ?? -1, bounds[index + 1] ?? Number.POSITIVE_INFINITY];
      const within = (event: GenerationEvent) => {
        const ms = firstByteMsOf(event);
        return ms !== null && ms > above && ms <= most;
      };
      expect([name, sumOf(name)]).toEqual([name, count(within)]);
    }
  }
}

const bounds = [-1, ...firstByteBoundsMs];

function byDayAndGroup(points: readonly SeriesEntry[]) {
  const sums = new Map<string, Record<string, bigint>>();
  for (const point of points) {
    const key = `${point.starts_at.toISOString().slice(0, 10)} ${point.group}`;
    const sum = sums.get(key) ?? { requests: 0n };
    sum.requests = (sum.requests ?? 0n) + point.requests;
    for (const name of amountNames) sum[name] = (sum[name] ?? 0n) + point[name];
    sums.set(key, sum);
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
}

test("any order, copies, batches and replicas give the records and sums of the plain meaning", async () => {
  const check = async (pairs: GenerationEvent[][], batches: { replica: number; picks: number[] }[]) => {
    await sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(store.database);
    const standing = fold(await deliver(pairs.flat(), batches));
    const rows = await store.database.selectFrom("record").select("event").orderBy("event_id").execute();
    expect(rows.map(fromRowEvent)).toEqual(standing);
    for (const accountId of accounts) {
      const everything = { accountId, ...window, keyHash: undefined, memberId: undefined };
      const whole = await checkActivity(standing, everything);
      const single = [];
      for (const day of days.toReversed()) {
        single.push(...(await checkActivity(standing, { ...everything, firstDay: day, lastDay: day })));
      }
      expect(single).toEqual(whole);
      await checkActivity(standing, { ...everything, keyHash: hashApiKey("one") });
      await checkActivity(standing, { ...everything, memberId: testUuid(7) });
      await checkSeries(standing, accountId);
    }
    for (const day of days) {
      const compared = await rebuildDay(store.database, day, { firstDay: days[0], dryRun: true });
      expect(compared).toEqual({ day, complete: true, differingCells: 0, differingHourCells: 0 });
    }
  };
  await fc.assert(fc.asyncProperty(generations, deliveries, check), { numRuns: 100 });
});
