import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AccountKind } from "../../gen/media/account/v1/account_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { SeriesGroup, SeriesStep } from "../../gen/media/usage/v1/usage_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
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

const clock = new ManualClock(Date.parse("2030-02-10T12:30:00Z"));
let server: TestUsageServer;
let account: TestUsageAccount;
let nextId = 0;

beforeAll(async () => {
  server = await startTestUsageServer({ clock });
  account = await server.newAccount(AccountKind.ORGANIZATION);
});

afterAll(() => server.close());

beforeEach(() => sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(server.database));

async function record(ended: string, init: UsageEventInit = {}, build = usageEvent) {
  nextId += 1;
  await server.record(build({ eventId: `gen-tts-${nextId}`, accountId: account.accountId, ended, ...init }));
}

function ask(request: object, key = account.managementKey) {
  return server.client(UsageService, `Bearer ${key}`).listActivitySeries(request);
}

/** Beginning, group and requests of each point. */
async function points(request: object) {
  const answer = await ask(request);
  return answer.points.map(({ startsAt, group, requests }) => [
    new Date(Number(startsAt?.seconds) * 1000).toISOString().slice(0, 16),
    group,
    requests,
  ]);
}

async function refusal(request: object, key = account.managementKey) {
  const error = await ask(request, key).then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  return { reason: error?.reason, paths: error?.issues.map(({ path }) => path) };
}

const at = (instant: string) => timestampFromMs(Date.parse(instant));
const hours = { step: SeriesStep.HOUR };
const days = { step: SeriesStep.DAY };

test("a point has all that is summed, errors and the histogram of first bytes", async () => {
  const firstByteAt = at("2030-02-10T10:59:59.150Z");
  await record("2030-02-10T11:00:00Z", { firstByteAt, byok: true, listPriceNanoUsd: 70n });
  await record("2030-02-10T11:59:59.999Z", { outcome: Outcome.FAILED, costNanoUsd: 0n, tokens: {} });
  await record("2030-02-10T11:30:00Z", { outcome: Outcome.CANCELLED, costNanoUsd: 0n, tokens: {} });
  await record("2030-02-10T11:30:00Z", {}, lostEvent);
  const { points, firstByteBoundsMs } = await ask(hours);
  expect(firstByteBoundsMs.slice(0, 2)).toEqual([100n, 200n]);
  const [, second, ...rest] = points[0]?.firstByteCounts ?? [];
  expect([second, rest.some((count) => count !== 0n), rest.length]).toEqual([1n, false, 9]);
  expect(points).toMatchObject([
    {
      startsAt: at("2030-02-10T11:00:00Z"),
      group: "",
      requests: 4n,
      errors: 2n,
      promptTokens: 3n,
      completionTokens: 2n,
      reasoningTokens: 1n,
      cachedTokens: 2n,
      usageNanoUsd: 5n,
      byokUsageInferenceNanoUsd: 70n,
    },
  ]);
  const [day] = (await ask(days)).points;
  expect({ ...day, startsAt: undefined }).toEqual({ ...points[0], startsAt: undefined });
  expect(day?.startsAt).toEqual(at("2030-02-10T00:00:00Z"));
});

test("points are told apart by model, provider, key and member, the dearest first", async () => {
  const { memberId, inferenceKeyHash: keyHash } = account;
  await record("2030-02-10T11:00:00Z", { keyHash, memberId });
  await record("2030-02-10T11:10:00Z", {
    keyHash,
    model: "acme/speaker",
    providerName: "Bolt",
    costNanoUsd: 9n,
  });
  await record("2030-02-10T10:10:00Z", { keyHash, endpointId: testUuid(9) });
  const at = (group: string, requests = 1n, hour = "11") => [`2030-02-10T${hour}:00`, group, requests];
  const by = (groupBy: SeriesGroup) => points({ ...hours, groupBy });
  const early = (group: string) => at(group, 1n, "10");
  expect(await by(SeriesGroup.MODEL)).toEqual([early("acme/voice"), at("acme/speaker"), at("acme/voice")]);
  expect(await by(SeriesGroup.PROVIDER)).toEqual([early("Acme"), at("Bolt"), at("Acme")]);
  expect(await by(SeriesGroup.KEY)).toEqual([early(keyHash), at(keyHash, 2n)]);
  expect(await by(SeriesGroup.MEMBER)).toEqual([early(""), at(""), at(memberId)]);
  expect(await by(SeriesGroup.UNSPECIFIED)).toEqual([early(""), at("", 2n)]);
});

test("a span is whole steps: the one that `from` lies in, up to the last that begins before `to`", async () => {
  for (const hour of ["09", "10", "11"]) await record(`2030-02-10T${hour}:59:59.999Z`);
  const span = { from: at("2030-02-10T10:30:00Z"), to: at("2030-02-10T11:00:00Z") };
  expect(await points({ ...hours, ...span })).toEqual([["2030-02-10T10:00", "", 1n]]);
  expect(await points({ ...days, ...span })).toEqual([["2030-02-10T00:00", "", 3n]]);
  const wide = { from: at("2030-02-02T00:00:00Z"), to: at("9999-12-31T23:59:59Z") };
  expect(await points({ ...hours, ...wide })).toHaveLength(3);
});

test("without a span it is the last 48 hours, or today and the 30 days before", async () => {
  const ends = [
    "2030-01-10T23:00:00Z",
    "2030-01-11T12:00:00Z",
    "2030-02-08T11:59:00Z",
    "2030-02-08T12:00:00Z",
  ];
  for (const ended of [...ends, "2030-02-10T12:29:00Z"]) await record(ended);
  expect((await points(hours)).map(([start]) => start)).toEqual(["2030-02-08T12:00", "2030-02-10T12:00"]);
  expect((await points(days)).map(([start]) => start)).toEqual([
    "2030-01-11T00:00",
    "2030-02-08T00:00",
    "2030-02-10T00:00",
  ]);
});

test("it is the account's alone, for management keys", async () => {
  await record("2030-02-10T11:00:00Z");
  const other = await server.newAccount();
  expect((await ask(hours, other.managementKey)).points).toEqual([]);
  expect((await refusal(hours, account.inferenceKey)).reason).toBe(ErrorReason.MANAGEMENT_KEY_REQUIRED);
});

test.for([
  [{}, ["step"]],
  [{ step: 9, groupBy: 9 }, ["step", "group_by"]],
  [{ ...hours, from: at("2030-02-01T23:59:59Z") }, ["from"]],
  [{ ...days, from: at("2030-01-10T23:59:59Z") }, ["from"]],
  [{ ...days, from: { seconds: -1n }, to: { seconds: 253_402_300_800n } }, ["from", "to"]],
  [{ ...hours, from: at("2030-02-10T11:00:00Z"), to: at("2030-02-10T11:00:00Z") }, ["to"]],
] as const)("%o is refused", async ([request, paths]) => {
  expect(await refusal(request)).toEqual({ reason: ErrorReason.INVALID_BODY, paths: [...paths] });
});
