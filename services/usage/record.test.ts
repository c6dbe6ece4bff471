import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import {
  createTestUsageDatabase,
  type TestUsageDatabase,
} from "../../test/support/services/usage-database.ts";
import { lostEvent, testUuid, usageEvent } from "../../test/support/services/usage-events.ts";
import { listActivity } from "./activity.ts";
import { fromRowEvent } from "./convert.ts";
import { recordEvents } from "./record.ts";
import { noMember } from "./store.ts";

const account = testUuid(1);
const [slow, fast] = [testUuid(100), testUuid(101)];
const { signal } = new AbortController();
let store: TestUsageDatabase;

beforeAll(async () => {
  store = await createTestUsageDatabase();
});

afterAll(() => store.close());

beforeEach(() => sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(store.database));

function record(...events: readonly GenerationEvent[]) {
  return recordEvents(store.database, events, signal);
}

async function cells() {
  const rows = await store.database
    .selectFrom("activity")
    .selectAll()
    .orderBy("day")
    .orderBy("endpoint_id")
    .execute();
  return rows.map(({ day, endpoint_id, requests, charged_nano_usd }) => ({
    day,
    endpoint_id,
    requests,
    charged_nano_usd,
  }));
}

function activity(accountId = account) {
  const window = { firstDay: "2029-12-01", lastDay: "2030-01-31" };
  return listActivity(store.database, { accountId, ...window, keyHash: undefined, memberId: undefined });
}

async function stored(eventId: string) {
  const rows = await store.database
    .selectFrom("record")
    .selectAll()
    .where("event_id", "=", eventId)
    .execute();
  return rows.map((row) => ({ ...row, event: fromRowEvent(row) }));
}

describe("an event", () => {
  test("becomes a record and is counted on the day of its end", async () => {
    const event = usageEvent({
      memberId: testUuid(7),
      ended: "2030-01-01T23:59:59.999Z",
      byok: true,
      listPriceNanoUsd: 90n,
    });
    expect(await record(event)).toEqual([]);
    const [row, ...more] = await stored("gen-tts-1");
    expect(more).toEqual([]);
    expect(row).toMatchObject({
      event,
      revision: 1,
      ended_at: new Date("2030-01-01T23:59:59.999Z"),
      member_id: testUuid(7),
    });
    expect(await store.database.selectFrom("activity").selectAll().execute()).toMatchObject([
      {
        account_id: account,
        day: "2030-01-01",
        endpoint_id: slow,
        key_hash: Buffer.from(event.keyHash, "hex"),
        member_id: testUuid(7),
        requests: 1n,
        prompt_tokens: 3n,
        completion_tokens: 2n,
        reasoning_tokens: 1n,
        cached_tokens: 2n,
        charged_nano_usd: 5n,
        byok_list_nano_usd: 90n,
      },
    ]);
  });

  test("that comes again changes nothing, in the same batch or a later one", async () => {
    const event = usageEvent();
    await record(event, event);
    await record(event, usageEvent({ eventId: "gen-tts-2" }));
    expect(await cells()).toEqual([
      { day: "2030-01-01", endpoint_id: slow, requests: 2n, charged_nano_usd: 10n },
    ]);
  });

  test("has a list price that counts only when an own key served", async () => {
    await record(usageEvent({ listPriceNanoUsd: 70n }));
    expect(await activity()).toMatchObject([{ byok_list_nano_usd: 0n }]);
  });

  test("without tokens, member or end of its names is one all the same", async () => {
    const { tokens: _none, ...event } = usageEvent({ model: "a\0b", providerName: "" });
    expect(await record(event as GenerationEvent)).toEqual([]);
    expect(await stored("gen-tts-1")).toMatchObject([{ member_id: noMember, prompt_tokens: 0n }]);
    expect(await activity()).toMatchObject([{ model: "a\ufffdb", provider_name: "", requests: 1n }]);
  });

  test.for<[string, Partial<GenerationEvent>]>([
    ["before 1970", { endedAt: timestampFromMs(-1) }],
    ["after 9999", { endedAt: timestampFromMs(253_402_300_800_000) }],
    ["that costs more than there is", { costNanoUsd: 10n ** 15n + 1n }],
    [
      "with a negative count",
      { tokens: { ...usageEvent().tokens, prompt: -1n } as GenerationEvent["tokens"] },
    ],
  ])("%s is refused and does not hold up the others", async ([, fault]) => {
    const bad = { ...usageEvent({ eventId: "gen-tts-bad" }), ...fault };
    expect(await record(bad, usageEvent())).toEqual([
      { eventId: "gen-tts-bad", revision: 1, reason: expect.stringContaining("outside") },
    ]);
    expect(await stored("gen-tts-bad")).toEqual([]);
    expect(await cells()).toMatchObject([{ requests: 1n }]);
    expect(await record(bad)).toHaveLength(1);
  });

  test("of a batch that fails is not recorded, and comes in with the next try", async () => {
    const stop = new AbortController();
    stop.abort(new Error("taken away"));
    await expect(recordEvents(store.database, [usageEvent()], stop.signal)).rejects.toThrow("taken away");
    expect([await stored("gen-tts-1"), await cells()]).toEqual([[], []]);
    await sql`ALTER TABLE activity RENAME TO activity_away`.execute(store.database);
    await expect(record(usageEvent())).rejects.toThrow("activity");
    await sql`ALTER TABLE activity_away RENAME TO activity`.execute(store.database);
    expect(await stored("gen-tts-1")).toEqual([]);
    await record(usageEvent());
    expect(await cells()).toMatchObject([{ requests: 1n }]);
  });
});

describe("revisions", () => {
  const lost = lostEvent({ ended: "2030-01-02T00:10:00Z", endpointId: fast });
  const real = usageEvent({ ended: "2030-01-01T23:59:00Z" });
  const expected = { day: "2030-01-01", endpoint_id: slow, requests: 1n, charged_nano_usd: 5n };

  test("lost alone counts a request that costs nothing, on its own endpoint and day", async () => {
    await record(lost);
    expect(await cells()).toEqual([
      { day: "2030-01-02", endpoint_id: fast, requests: 1n, charged_nano_usd: 0n },
    ]);
    expect(await activity()).toMatchObject([{ endpoint_id: fast, model: "acme/voice", requests: 1n }]);
  });

  test.for<[string, (readonly GenerationEvent[])[]]>([
    ["lost, then real", [[lost], [real]]],
    ["real, then lost", [[real], [lost]]],
    ["both at once", [[lost, real]]],
    ["both at once, real first", [[real, lost]]],
    ["lost, real and both again", [[lost], [real], [lost, real], [lost]]],
  ])("%s: the real one stands, and what lost had counted is gone", async ([, batches]) => {
    for (const batch of batches) expect(await record(...batch)).toEqual([]);
    expect((await stored("gen-tts-1")).map(({ event }) => event)).toEqual([real]);
    expect((await cells()).filter(({ requests }) => requests !== 0n)).toEqual([expected]);
    expect(await activity()).toMatchObject([expected]);
  });

  test("real leaves another's cell alone when lost had been counted in it", async () => {
    await record(lost, usageEvent({ eventId: "gen-tts-2", endpointId: fast, ended: "2030-01-02T00:05:00Z" }));
    await record(real);
    expect(await activity()).toMatchObject([
      { day: "2030-01-02", endpoint_id: fast, requests: 1n, charged_nano_usd: 5n },
      expected,
    ]);
  });
});

describe("activity", () => {
  test("has one entry a day and endpoint, under the names it had last", async () => {
    const renamed = { model: "acme/speaker", modelPermaslug: "acme/speaker-2030", providerName: "Acme Corp" };
    await record(
      usageEvent({ eventId: "gen-tts-3", ended: "2030-01-01T18:00:00Z", ...renamed }),
      usageEvent({
        eventId: "gen-tts-2",
        ended: "2030-01-01T19:00:00Z",
        ...renamed,
        keyHash: "0".repeat(64),
      }),
      lostEvent({ eventId: "gen-tts-4", ended: "2030-01-01T23:00:00Z" }),
    );
    await record(usageEvent({ ended: "2030-01-01T18:30:00Z" }));
    await record(usageEvent({ eventId: "gen-tts-5", ended: "2029-12-31T18:30:00Z" }));
    const names = { model: "acme/speaker", permaslug: "acme/speaker-2030", provider_name: "Acme Corp" };
    expect(await activity()).toMatchObject([
      { day: "2030-01-01", requests: 4n, charged_nano_usd: 15n, prompt_tokens: 9n, ...names },
      { day: "2029-12-31", requests: 1n, model: "acme/voice" },
    ]);
  });

  test("does not keep the names of what was only lost for a while", async () => {
    await record(lostEvent({ model: "acme/never" }), usageEvent({ eventId: "gen-tts-2" }));
    expect(await activity()).toMatchObject([{ requests: 2n, model: "acme/voice" }]);
    await record(usageEvent());
    expect(await activity()).toMatchObject([{ requests: 2n, model: "acme/voice", charged_nano_usd: 10n }]);
  });

  test("is another account's only", async () => {
    await record(usageEvent({ accountId: testUuid(2) }));
    expect(await activity()).toEqual([]);
    expect(await activity(testUuid(2))).toHaveLength(1);
  });
});
