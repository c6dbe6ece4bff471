import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AccountKind } from "../../gen/media/account/v1/account_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import type { ActivityItem } from "../../gen/media/usage/v1/usage_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import {
  lostEvent,
  testUuid,
  type UsageEventInit,
  usageEvent,
} from "../../test/support/services/usage-events.ts";
import {
  startTestUsageServer,
  type TestUsageAccount,
  type TestUsageServer,
} from "../../test/support/services/usage-server.ts";

/** Shortly after midnight UTC, when the day before still goes on in the Americas. */
const clock = new ManualClock(Date.parse("2030-02-10T00:30:00Z"));
let server: TestUsageServer;
let account: TestUsageAccount;
let nextId = 0;

beforeAll(async () => {
  server = await startTestUsageServer({ clock });
});

afterAll(() => server.close());

beforeEach(async () => {
  account = await server.newAccount();
});

function usageOf(key: string) {
  return server.client(UsageService, `Bearer ${key}`);
}

/** Records an event of the account, with an id that no other has. */
async function record(init: UsageEventInit, build = usageEvent) {
  nextId += 1;
  const event = build({ eventId: `gen-tts-${nextId}`, accountId: account.accountId, ...init });
  await server.record(event);
  return event;
}

async function activity(request: object = {}, key = account.managementKey): Promise<ActivityItem[]> {
  return (await usageOf(key).listActivity(request)).items;
}

async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  if (error === undefined) throw new Error("the call was not refused");
  return { reason: error.reason, paths: error.issues.map(({ path }) => path) };
}

describe("activity", () => {
  test("is empty at first", async () => {
    expect(await activity()).toEqual([]);
  });

  test("has all its fields, sums of all who used an endpoint on a day", async () => {
    await record({ ended: "2030-02-10T00:10:00Z", keyHash: account.inferenceKeyHash });
    await record({ ended: "2030-02-10T00:20:00Z", byok: true, costNanoUsd: 2n, listPriceNanoUsd: 40n });
    const [item, ...more] = await activity();
    expect(more).toEqual([]);
    expect({ ...item, $typeName: undefined }).toEqual({
      $typeName: undefined,
      date: "2030-02-10",
      endpointId: testUuid(100),
      model: "acme/voice",
      modelPermaslug: "acme/voice-2029",
      providerName: "Acme",
      requests: 2n,
      promptTokens: 6n,
      completionTokens: 4n,
      reasoningTokens: 2n,
      cachedTokens: 4n,
      usageNanoUsd: 7n,
      byokUsageInferenceNanoUsd: 40n,
    });
  });

  test("counts a lost generation and one that failed for nothing", async () => {
    await record({ ended: "2030-02-10T00:10:00Z" }, lostEvent);
    await record({ ended: "2030-02-10T00:10:00Z", costNanoUsd: 0n, tokens: {} });
    expect(await activity()).toMatchObject([{ requests: 2n, usageNanoUsd: 0n, promptTokens: 0n }]);
  });

  test("comes by date and charge, both descending, then by endpoint", async () => {
    const use = (ended: string, endpoint: number, costNanoUsd: bigint) =>
      record({ ended, endpointId: testUuid(endpoint), costNanoUsd });
    await use("2030-02-09T23:59:59.999Z", 104, 10n ** 14n);
    await use("2030-02-10T00:00:00Z", 103, 3n);
    await use("2030-02-10T00:00:01Z", 102, 20n);
    await use("2030-02-10T00:00:02Z", 101, 3n);
    await use("2030-02-10T00:00:03Z", 105, 100n);
    const places = (await activity()).map(({ date, endpointId }) => [date, endpointId]);
    expect(places).toEqual([
      ["2030-02-10", testUuid(105)],
      ["2030-02-10", testUuid(102)],
      ["2030-02-10", testUuid(101)],
      ["2030-02-10", testUuid(103)],
      ["2030-02-09", testUuid(104)],
    ]);
  });

  test("reaches from 30 days ago to today, and its single days add up to it", async () => {
    const ends = ["2030-01-10T23:59:59.999Z", "2030-01-11T00:00:00Z", "2030-02-09T12:00:00Z"];
    for (const ended of [...ends, "2030-02-10T00:29:00Z", "2030-02-11T00:00:00Z"]) await record({ ended });
    const whole = await activity();
    expect(whole.map(({ date }) => date)).toEqual(["2030-02-10", "2030-02-09", "2030-01-11"]);
    const single: ActivityItem[] = [];
    for (let daysAgo = 0; daysAgo <= 30; daysAgo += 1) {
      const date = new Date(clock.nowMs() - daysAgo * 86_400_000).toISOString().slice(0, 10);
      single.push(...(await activity({ date })));
    }
    expect(single).toEqual(whole);
  });

  test.for([
    "2030-02-11",
    "2030-01-10",
    "2029-02-10",
    "2030-02-30",
    "2030-2-10",
    "10.02.2030",
    "2030-02-10T00:00:00Z",
    " ",
    "2030-02-10\0",
  ])("of the date %j is refused", async (date) => {
    expect(await refusal(activity({ date }))).toEqual({ reason: ErrorReason.INVALID_BODY, paths: ["date"] });
  });

  test("can be narrowed to a key, known or not", async () => {
    await record({ ended: "2030-02-10T00:10:00Z", keyHash: account.inferenceKeyHash });
    await record({ ended: "2030-02-10T00:10:00Z" });
    const apiKeyHash = account.inferenceKeyHash;
    expect(await activity({ apiKeyHash })).toMatchObject([{ requests: 1n, usageNanoUsd: 5n }]);
    expect(await activity({ apiKeyHash: apiKeyHash.toUpperCase() })).toMatchObject([{ requests: 1n }]);
    expect(await activity({ apiKeyHash: "0".repeat(64) })).toEqual([]);
    expect(await activity({ apiKeyHash, date: "2030-02-09" })).toEqual([]);
  });

  test.for(["0", "g".repeat(64), "0".repeat(63), "0".repeat(65), `${"0".repeat(64)}\n`])(
    "of the key hash %j is refused",
    async (apiKeyHash) => {
      const refused = await refusal(activity({ apiKeyHash, date: "yesterday" }));
      expect(refused).toEqual({ reason: ErrorReason.INVALID_BODY, paths: ["date", "api_key_hash"] });
    },
  );

  test("can be narrowed to a member of an organization, and of no other account", async () => {
    account = await server.newAccount(AccountKind.ORGANIZATION);
    const { memberId } = account;
    await record({ ended: "2030-02-10T00:10:00Z", memberId });
    await record({ ended: "2030-02-10T00:10:00Z", memberId: testUuid(7) });
    expect(await activity()).toMatchObject([{ requests: 2n }]);
    expect(await activity({ memberId })).toMatchObject([{ requests: 1n }]);
    expect(await activity({ memberId: testUuid(8) })).toEqual([]);
    const malformed = await refusal(activity({ memberId: "ada" }));
    expect(malformed).toEqual({ reason: ErrorReason.INVALID_BODY, paths: ["member_id"] });
    account = await server.newAccount();
    expect(await refusal(activity({ memberId }))).toEqual({
      reason: ErrorReason.INVALID_BODY,
      paths: ["member_id"],
    });
  });

  test("is nobody else's", async () => {
    await record({ ended: "2030-02-10T00:10:00Z" });
    const other = await server.newAccount();
    expect(await activity({}, other.managementKey)).toEqual([]);
    expect(await activity()).toHaveLength(1);
  });

  test("needs a management key", async () => {
    const inference = await refusal(activity({ date: "never" }, account.inferenceKey));
    expect(inference.reason).toBe(ErrorReason.MANAGEMENT_KEY_REQUIRED);
    expect((await refusal(activity({}, generateApiKey()))).reason).toBe(ErrorReason.KEY_UNKNOWN);
    const anonymous = server.client(UsageService).listActivity({});
    expect((await refusal(anonymous)).reason).toBe(ErrorReason.KEY_MISSING);
  });

  test("of as many endpoints as there may be fits an answer", async () => {
    const names = { model: "m".repeat(64), modelPermaslug: "p".repeat(80), providerName: "n".repeat(40) };
    const events = Array.from({ length: 31 * 100 }, (_, index) => {
      const ended = clock.nowMs() - (index % 31) * 86_400_000;
      const endpointId = testUuid(1000 + Math.floor(index / 31));
      return usageEvent({
        eventId: `gen-img-full-${index}`,
        accountId: account.accountId,
        endpointId,
        ended,
        ...names,
      });
    });
    await server.record(...events);
    expect(await activity()).toHaveLength(31 * 100);
  });
});

describe("a generation", () => {
  test("is shown whole to any key of its account", async () => {
    const event = await record({
      sessionId: "s",
      trace: { a: [1, "b"] },
      firstByteAt: { seconds: 5n, nanos: 1 },
    });
    for (const key of [account.managementKey, account.inferenceKey]) {
      expect((await usageOf(key).getGeneration({ generationId: event.eventId })).event).toEqual(event);
    }
  });

  test("is the revision that stands", async () => {
    const lost = await record({}, lostEvent);
    const get = () => usageOf(account.inferenceKey).getGeneration({ generationId: lost.eventId });
    expect((await get()).event).toEqual(lost);
    const real = usageEvent({ eventId: lost.eventId, accountId: account.accountId });
    await server.record(real);
    await server.record(lost);
    expect((await get()).event).toEqual(real);
  });

  test("of another account, or none, is not found", async () => {
    const { eventId } = await record({});
    const other = await server.newAccount();
    for (const [key, generationId] of [
      [other.managementKey, eventId],
      [other.inferenceKey, eventId],
      [account.managementKey, "gen-tts-absent"],
      [account.managementKey, ""],
      [account.managementKey, "gen\0"],
    ] as const) {
      const get = usageOf(key).getGeneration({ generationId });
      expect(await refusal(get)).toEqual({ reason: ErrorReason.RECORD_UNKNOWN, paths: [] });
    }
  });
});

test("no caller's key opens what is for operators", async () => {
  const admin = server.client(UsageAdminService, `Bearer ${account.managementKey}`);
  const rebuild = await refusal(admin.rebuildActivity({ fromDate: "2030-01-01", toDate: "2030-01-01" }));
  expect(rebuild.reason).toBe(ErrorReason.CALLER_NOT_ALLOWED);
});
