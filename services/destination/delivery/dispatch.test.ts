import { fromBinary } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { GenerationEventSchema } from "../../../gen/media/event/v1/generation_event_pb.ts";
import {
  createTestDestinationDatabase,
  type TestDestinationDatabase,
} from "../../../test/support/services/destination-database.ts";
import {
  addDestination,
  queueEvents,
  quickLimits,
  waitingFor,
} from "../../../test/support/services/destination-replica.ts";
import { lostEvent, testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import { deleteDestination } from "../settings/destinations.ts";
import type { DestinationDatabase } from "../store.ts";
import { claimBatches } from "./claim.ts";
import { dispatchEvents } from "./dispatch.ts";

const url = "https://receiver.test/";
let testDatabase: TestDestinationDatabase;
let database: DestinationDatabase;
let accountCount = 0;
let account_id: string;

beforeAll(async () => {
  testDatabase = await createTestDestinationDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());

beforeEach(async () => {
  await sql`TRUNCATE pending, known_event, delivery, lane, destination`.execute(database);
  account_id = testUuid(++accountCount);
});

const event = (eventId: string, init = {}) => usageEvent({ eventId, accountId: account_id, ...init });
const lost = (eventId: string) => lostEvent({ eventId, accountId: account_id });

function claim() {
  return claimBatches({
    database,
    limits: quickLimits,
    healthy: 10,
    failing: 10,
    maxBatchEvents: () => 10,
  });
}

describe("an event", () => {
  test("waits for each enabled destination of its account, and for no other", async () => {
    const own = [
      await addDestination(database, { account_id, url }),
      await addDestination(database, { account_id, url }),
    ];
    const disabled = await addDestination(database, { account_id, url, enabled: false });
    const foreign = await addDestination(database, { account_id: testUuid(999), url });
    expect(await queueEvents(database, event("gen-tts-1"), event("gen-tts-2"))).toBe(4);
    for (const id of own) expect(await waitingFor(database, id)).toEqual(["gen-tts-1/1", "gen-tts-2/1"]);
    for (const id of [disabled, foreign]) expect(await waitingFor(database, id)).toEqual([]);
    const due = await database
      .selectFrom("lane")
      .select("due_at")
      .where("destination_id", "in", own)
      .execute();
    expect(due.every(({ due_at }) => due_at !== null)).toBe(true);
  });

  test("waits where it is selected", async () => {
    const ofKey = await addDestination(database, { account_id, url, key_hashes: ["ab".repeat(32)] });
    const rule = { field: "model", operator: "starts_with", value: "acme/v" } as const;
    const filter_rules = { enabled: true, groups: [{ logic: "and", rules: [rule] } as const] };
    const ofModel = await addDestination(database, { account_id, url, filter_rules });
    const keyHash = "ab".repeat(32);
    await queueEvents(
      database,
      event("gen-tts-1", { keyHash, model: "acme/voice" }),
      event("gen-tts-2", { keyHash, model: "acme/brush" }),
      event("gen-tts-3", { model: "acme/voice" }),
    );
    expect(await waitingFor(database, ofKey)).toEqual(["gen-tts-1/1", "gen-tts-2/1"]);
    expect(await waitingFor(database, ofModel)).toEqual(["gen-tts-1/1", "gen-tts-3/1"]);
  });

  test("is stored without what is not disclosed to its destination", async () => {
    const secrets = { endUser: "canary-user", sessionId: "canary-session", trace: { a: "canary-trace" } };
    const closed = await addDestination(database, {
      account_id,
      url,
      privacy_mode: true,
      tells_cost: false,
    });
    const open = await addDestination(database, { account_id, url });
    await queueEvents(database, event("gen-tts-1", { ...secrets, costNanoUsd: 77n, keyName: "a name" }));
    const stored = async (id: string) => {
      const { event: bytes } = await database
        .selectFrom("pending")
        .select("event")
        .where("destination_id", "=", id)
        .executeTakeFirstOrThrow();
      return bytes;
    };
    const bytes = await stored(closed);
    expect(bytes.includes("canary")).toBe(false);
    expect(fromBinary(GenerationEventSchema, bytes)).toMatchObject({
      costNanoUsd: 0n,
      listPriceNanoUsd: 0n,
      keyName: "a name",
    });
    const whole = fromBinary(GenerationEventSchema, await stored(open));
    expect(whole).toEqual(event("gen-tts-1", { ...secrets, costNanoUsd: 77n, keyName: "a name" }));
  });

  test("goes behind what is paused, and does not wake it", async () => {
    const id = await addDestination(database, { account_id, url });
    await sql`UPDATE lane SET paused_at = now() WHERE destination_id = ${id}`.execute(database);
    await queueEvents(database, event("gen-tts-1"));
    expect(await waitingFor(database, id)).toEqual(["gen-tts-1/1"]);
    expect((await claim()).batches).toEqual([]);
  });
});

describe("copies and revisions", () => {
  test("of which the same or a higher one is known are not queued", async () => {
    const id = await addDestination(database, { account_id, url });
    await queueEvents(database, event("gen-tts-1"), lost("gen-tts-1"), event("gen-tts-1"));
    expect(await waitingFor(database, id)).toEqual(["gen-tts-1/1"]);
    expect(await queueEvents(database, event("gen-tts-1"))).toBe(0);
    expect(await queueEvents(database, lost("gen-tts-1"))).toBe(0);
    await sql`DELETE FROM pending`.execute(database);
    expect(await queueEvents(database, event("gen-tts-1"), lost("gen-tts-1"))).toBe(0);
  });

  test("of which a lower one waits take its place", async () => {
    const id = await addDestination(database, { account_id, url });
    await queueEvents(database, lost("gen-tts-1"), event("gen-tts-2"));
    expect(await queueEvents(database, event("gen-tts-1"))).toBe(1);
    expect(await waitingFor(database, id)).toEqual(["gen-tts-2/1", "gen-tts-1/1"]);
  });

  test("of which a lower one is in a batch come after it", async () => {
    const id = await addDestination(database, { account_id, url });
    await queueEvents(database, lost("gen-tts-1"));
    const { batches } = await claim();
    expect(batches.flatMap(({ events }) => events.map(({ revision }) => revision))).toEqual([0]);
    await queueEvents(database, event("gen-tts-1"), lost("gen-tts-2"));
    await queueEvents(database, event("gen-tts-2"));
    expect(await waitingFor(database, id)).toEqual(["gen-tts-1/0", "gen-tts-1/1", "gen-tts-2/1"]);
  });

  test("that two replicas have at once are queued once, whichever comes first", async () => {
    const ids = [await addDestination(database, { account_id, url })];
    ids.push(await addDestination(database, { account_id, url }));
    const names = Array.from({ length: 40 }, (_, index) => `gen-tts-${index}`);
    const other = testDatabase.connect();
    const events = names.map((name) => event(name));
    const queued = await Promise.all([
      queueEvents(database, ...events),
      queueEvents(other, ...events.toReversed()),
      queueEvents(other, ...names.map((name) => lost(name))),
    ]);
    expect(queued.slice(0, 2).reduce((sum, count) => sum + count, 0)).toBe(80);
    for (const id of ids) {
      expect((await waitingFor(database, id)).sort()).toEqual(names.map((name) => `${name}/1`).sort());
    }
  });
});

test("what is queued while its destination is deleted leaves nothing behind", async () => {
  const rounds = Array.from({ length: 10 }, (_, index) => index);
  for (const round of rounds) {
    const id = await addDestination(database, { account_id, url });
    const events = Array.from({ length: 20 }, (_, index) => event(`gen-tts-${round}-${index}`));
    await Promise.all([
      queueEvents(database, ...events),
      deleteDestination(database, { id, accountId: account_id }),
    ]);
    const before = (await waitingFor(database, id)).length;
    expect([0, 20]).toContain(before);
    await queueEvents(database, event(`gen-tts-late-${round}`));
    expect(await waitingFor(database, id)).toHaveLength(before);
  }
});

test("a batch whose partition was taken away stores nothing", async () => {
  const id = await addDestination(database, { account_id, url });
  await expect(dispatchEvents(database, [event("gen-tts-1")], AbortSignal.abort())).rejects.toThrow();
  expect(await waitingFor(database, id)).toEqual([]);
  expect(await queueEvents(database, event("gen-tts-1"))).toBe(1);
});

test("what ended at no time that can be stored is refused, and the rest queued", async () => {
  const id = await addDestination(database, { account_id, url });
  const odd = Object.assign(event("gen-tts-odd"), { endedAt: { seconds: 2n ** 60n, nanos: 0 } });
  const before = Object.assign(event("gen-tts-before"), { endedAt: { seconds: -1n, nanos: 0 } });
  const events = [odd, event("gen-tts-1"), before];
  const { queuedCount, refused } = await dispatchEvents(database, events, new AbortController().signal);
  expect([queuedCount, refused.map(({ eventId }) => eventId)]).toEqual([
    1,
    ["gen-tts-odd", "gen-tts-before"],
  ]);
  expect(await waitingFor(database, id)).toEqual(["gen-tts-1/1"]);
});

test("accounts without destinations leave no trace", async () => {
  await addDestination(database, { account_id: testUuid(999), url });
  expect(await queueEvents(database, event("gen-tts-1"))).toBe(0);
  expect(await database.selectFrom("known_event").selectAll().execute()).toEqual([]);
});
