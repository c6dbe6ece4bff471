import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AccountKind } from "../../../gen/media/account/v1/account_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { type GenerationEvent, Outcome } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { UsageService } from "../../../gen/media/usage/v1/usage_service_pb.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { lostEvent, testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import {
  startTestUsageServer,
  type TestUsageAccount,
  type TestUsageServer,
} from "../../../test/support/services/usage-server.ts";
import { fromRowEvent } from "../convert.ts";
import { giveUpDaysBefore, pruneStep } from "../retention.ts";
import { type GenerationCursor, type GenerationFilter, listGenerations } from "./list-generations.ts";

let server: TestUsageServer;
let organization: TestUsageAccount;

beforeAll(async () => {
  server = await startTestUsageServer();
  organization = await server.newAccount(AccountKind.ORGANIZATION);
});

afterAll(() => server.close());

beforeEach(() => sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(server.database));

function list(request: object, key = organization.managementKey) {
  return server.client(UsageService, `Bearer ${key}`).listGenerations(request);
}

async function idsOf(request: object): Promise<string[]> {
  return (await list(request)).events.map(({ eventId }) => eventId);
}

async function refusedPaths(request: object, key = organization.managementKey) {
  const error = await list(request, key).then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  return { reason: error?.reason, paths: error?.issues.map(({ path }) => path) };
}

const everything: GenerationFilter = {
  accountId: testUuid(1),
  fromMs: undefined,
  beforeMs: undefined,
  model: undefined,
  provider: undefined,
  keyHash: undefined,
  outcome: undefined,
  memberId: undefined,
  sessionId: undefined,
  after: undefined,
  limit: 100,
};

describe("over RPC, generations", () => {
  test("come whole, newest first, page by page, to management keys of their account alone", async () => {
    const { accountId, inferenceKey } = organization;
    const events = ["a", "b", "c"].map((id, hour) =>
      usageEvent({ eventId: `gen-tts-${id}`, accountId, ended: `2030-01-01T0${hour}:00:00Z` }),
    );
    await server.record(...events, usageEvent({ eventId: "gen-tts-other", accountId: testUuid(2) }));
    const first = await list({ pageSize: 2 });
    expect(first.events).toEqual([events[2], events[1]]);
    expect(await list({ pageSize: 2, pageToken: first.nextPageToken })).toMatchObject({
      events: [events[0]],
      nextPageToken: "",
    });
    expect(await refusedPaths({}, inferenceKey)).toEqual({
      reason: ErrorReason.MANAGEMENT_KEY_REQUIRED,
      paths: [],
    });
  });

  test("are found by each filter", async () => {
    const { accountId, memberId } = organization;
    const odd = {
      model: "acme/speaker",
      provider: "bolt",
      apiKeyHash: hashApiKey("odd"),
      memberId,
      sessionId: "a session\0",
    };
    const { apiKeyHash: keyHash, provider: providerSlug, ...event } = odd;
    const failed = { providerSlug, outcome: Outcome.FAILED, reason: "provider_error" };
    await server.record(
      usageEvent({ eventId: "gen-tts-plain", accountId }),
      usageEvent({ eventId: "gen-tts-odd", accountId, keyHash, ...event, ...failed }),
    );
    for (const [name, value] of Object.entries({ ...odd, outcome: Outcome.FAILED })) {
      expect([name, await idsOf({ [name]: value })]).toEqual([name, ["gen-tts-odd"]]);
    }
    expect(await idsOf({ apiKeyHash: keyHash.toUpperCase() })).toEqual(["gen-tts-odd"]);
    expect(await idsOf({ model: "acme/voice", outcome: Outcome.FAILED })).toEqual([]);
    expect(await idsOf({ model: "acme" })).toEqual([]);
  });

  test("show what a lost one came to, once it is known, and no longer how it was lost", async () => {
    const { accountId } = organization;
    await server.record(lostEvent({ accountId, ended: "2030-01-02T00:00:00Z" }));
    expect(await idsOf({ outcome: Outcome.LOST })).toEqual(["gen-tts-1"]);
    await server.record(usageEvent({ accountId }));
    expect(await idsOf({ outcome: Outcome.LOST })).toEqual([]);
    expect((await list({})).events).toMatchObject([{ revision: 1, outcome: Outcome.SUCCEEDED }]);
  });

  test("are refused for what is no filter or page", async () => {
    const wrong = {
      from: { seconds: -1n },
      to: { seconds: 253_402_300_800n },
      apiKeyHash: "0",
      memberId: "ada",
      outcome: 99,
      pageToken: "1",
      pageSize: 101,
    };
    const paths = ["from", "to", "api_key_hash", "member_id", "outcome", "page_token", "page_size"];
    expect(await refusedPaths(wrong)).toEqual({ reason: ErrorReason.INVALID_BODY, paths });
    for (const pageToken of ["x.gen", "1.", "1.gen\n", "999999999999999.gen"]) {
      expect((await refusedPaths({ pageToken })).paths).toEqual(["page_token"]);
    }
    const personal = await server.newAccount();
    expect((await refusedPaths({ memberId: testUuid(7) }, personal.managementKey)).paths).toEqual([
      "member_id",
    ]);
  });
});

const texts = { model: ["m/1", "m/2"], provider: ["p", "q"], session: ["", "s", "t"] } as const;
const startMs = Date.parse("2030-01-01T00:00:00Z");

const generation = fc.record({
  account: fc.constantFrom(testUuid(1), testUuid(1), testUuid(2)),
  ended: fc.integer({ min: startMs, max: startMs + 5 }),
  model: fc.constantFrom(...texts.model),
  providerSlug: fc.constantFrom(...texts.provider),
  sessionId: fc.constantFrom(...texts.session),
  key: fc.constantFrom("one", "two"),
  memberId: fc.constantFrom("", testUuid(7)),
  outcome: fc.constantFrom(Outcome.SUCCEEDED, Outcome.FAILED),
  wasLost: fc.boolean(),
});

const maybe = <T>(...values: readonly T[]) => fc.constantFrom(undefined, undefined, ...values);
const filters = fc.record({
  fromMs: maybe(startMs + 1, startMs + 3),
  beforeMs: maybe(startMs + 3, startMs + 5),
  model: maybe(...texts.model),
  provider: maybe(...texts.provider),
  keyHash: maybe(hashApiKey("one")),
  outcome: maybe<number>(Outcome.FAILED),
  memberId: maybe(testUuid(7)),
  sessionId: maybe("s"),
  limit: fc.integer({ min: 1, max: 5 }),
});

/** The plain meaning of a filter, an event beside its end. */
function matches(event: GenerationEvent, endedMs: number, filter: Partial<GenerationFilter>): boolean {
  const is = <T>(wanted: T | undefined, value: T) => wanted === undefined || wanted === value;
  return (
    event.accountId === testUuid(1) &&
    endedMs >= (filter.fromMs ?? 0) &&
    endedMs < (filter.beforeMs ?? Number.POSITIVE_INFINITY) &&
    is(filter.model, event.model) &&
    is(filter.provider, event.providerSlug) &&
    is(filter.keyHash, event.keyHash) &&
    is<number>(filter.outcome, event.outcome) &&
    is(filter.memberId, event.memberId) &&
    is(filter.sessionId, event.sessionId)
  );
}

test("the pages of any filters, of any size, are what matches them, each once and in order", async () => {
  const check = async (
    list: (typeof generation extends fc.Arbitrary<infer G> ? G : never)[],
    filter: object,
  ) => {
    await sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(server.database);
    const made = list.map(({ account, key, wasLost, ...rest }, index) => {
      const init = { ...rest, accountId: account, keyHash: hashApiKey(key), eventId: `gen-tts-${index}` };
      return { event: usageEvent(init), endedMs: rest.ended, wasLost };
    });
    const lost = made.filter(({ wasLost }) => wasLost);
    await server.record(...lost.map(({ event }) => lostEvent({ ...event, ended: startMs, revision: 0 })));
    await server.record(...made.map(({ event }) => event));
    const expected = made
      .filter(({ event, endedMs }) => matches(event, endedMs, filter))
      .sort((a, b) => b.endedMs - a.endedMs || (a.event.eventId < b.event.eventId ? 1 : -1));
    const found: string[] = [];
    let after: GenerationCursor | undefined;
    do {
      const page = await listGenerations(server.database, { ...everything, ...filter, after });
      found.push(...page.events.map(({ event }) => fromRowEvent({ event }).eventId));
      after = page.next;
    } while (after !== undefined);
    expect(found).toEqual(expected.map(({ event }) => event.eventId));
  };
  await fc.assert(fc.asyncProperty(fc.array(generation, { minLength: 1, maxLength: 12 }), filters, check), {
    numRuns: 100,
  });
});

test("what is pruned is listed no more", async () => {
  for (const day of ["2030-01-01", "2030-01-02"]) {
    const init = { eventId: `gen-tts-${day}`, accountId: testUuid(1), ended: `${day}T12:00:00Z` };
    await server.record(usageEvent(init));
  }
  await giveUpDaysBefore(server.database, "2030-01-02");
  expect(await pruneStep(server.database, 10)).toBe(1);
  const rows = await server.database.selectFrom("listing").select("event_id").execute();
  expect(rows).toEqual([{ event_id: "gen-tts-2030-01-02" }]);
});
