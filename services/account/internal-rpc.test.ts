import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  PrincipalSchema,
  type Reservation,
  ReservationOutcome,
  ReservationSchema,
  SettleOutcome,
} from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { type GenerationEvent, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { fromEventMessage } from "../../lib/events/event-message.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  createPayer,
  faultsOfBooks,
  lostEvent,
  moneyOf,
  newGenerationId,
  type Payer,
  realEvent,
} from "../../test/support/services/account-money.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../test/support/services/account-server.ts";
import { maxBatchItems } from "./money/hold-requests.ts";
import { maxNanoUsd } from "./money/settlements.ts";

const dayMs = 86_400_000;
let server: TestAccountServer;
let speech: Client<typeof AccountInternalService>;
let payer: Payer;

beforeAll(async () => {
  server = await startTestAccountServer();
  speech = server.client(AccountInternalService, await server.tokenOf("speech"));
});
afterAll(() => server.close());
beforeEach(async () => {
  payer = await createPayer(server.database, { credit: 100n });
});
afterEach(async () => expect(await faultsOfBooks(server.database)).toEqual([]));

/** A reservation by the payer, with a draft that says more than it should. */
function reservation(amountNanoUsd: bigint, more: Partial<Reservation> = {}): Reservation {
  const { accountId, keyHash } = payer;
  const generationId = newGenerationId();
  const draft = Object.assign(realEvent(payer, generationId, 5n), { accountId: "", keyHash: "", model: "m" });
  const deadline = timestampFromMs(Date.now() + 3_600_000);
  const principal = create(PrincipalSchema, { accountId, keyHash });
  const own = create(ReservationSchema, { generationId, principal, amountNanoUsd, deadline, draft });
  return Object.assign(own, more);
}

function draftWith(more: Partial<GenerationEvent>): GenerationEvent {
  return Object.assign(realEvent(payer, newGenerationId(), 0n), more);
}

/** A hold that is open, by its id. */
async function hold(amount: bigint): Promise<string> {
  const asked = reservation(amount);
  const { outcomes } = await speech.reserve({ reservations: [asked] });
  expect(outcomes).toEqual([ReservationOutcome.GRANTED]);
  return asked.generationId;
}

async function refusalOf(
  call: Promise<unknown>,
): Promise<{ reason: ErrorReason; paths: string[] } | undefined> {
  return call.then(
    () => undefined,
    (thrown: unknown) => {
      const { reason, issues } = DomainError.from(thrown);
      return { reason, paths: issues.map(({ path }) => path) };
    },
  );
}

describe("RecordProviderTest", () => {
  const asked = { operator: "ada", providerSlug: "acme", note: "speech: acme/voice" };

  test("stands in the audit under the operator's name", async () => {
    await speech.recordProviderTest(asked);
    const { operator, action, account_id, subject, note } = await server.database
      .selectFrom("audit")
      .selectAll()
      .orderBy("id", "desc")
      .executeTakeFirstOrThrow();
    expect({ operator, action, account_id, subject, note }).toEqual({
      operator: "ada",
      action: "provider.test",
      account_id: null,
      subject: "acme",
      note: "speech: acme/voice",
    });
  });

  test("says of what is missing where, and is for those alone who test", async () => {
    const empty = speech.recordProviderTest({ operator: "", providerSlug: "", note: "" });
    const paths = ["operator", "provider_slug", "note"];
    expect(await refusalOf(empty)).toEqual({ reason: ErrorReason.INVALID_BODY, paths });
    const gateway = server.client(AccountInternalService, await server.tokenOf("gateway"));
    expect(await refusalOf(gateway.recordProviderTest(asked))).toMatchObject({
      reason: ErrorReason.CALLER_NOT_ALLOWED,
    });
  });
});

describe("Reserve", () => {
  test("answers each reservation in its order, and the same again", async () => {
    const late = reservation(1n, { deadline: timestampFromMs(Date.now() - 60_000) });
    const { accountId, keyHash } = await createPayer(server.database, { credit: 100n, limit: 1n });
    const limited = reservation(2n, { principal: create(PrincipalSchema, { accountId, keyHash }) });
    const reservations = [reservation(60n), reservation(50n), late, limited, reservation(40n)];
    const expected = [
      ReservationOutcome.GRANTED,
      ReservationOutcome.CREDITS_EXHAUSTED,
      ReservationOutcome.TOO_LATE,
      ReservationOutcome.KEY_LIMIT_REACHED,
      ReservationOutcome.GRANTED,
    ];
    for (let copies = 0; copies < 2; copies++) {
      expect((await speech.reserve({ reservations })).outcomes).toEqual(expected);
    }
  });

  test("keeps the draft as the event that a lost request leaves, whatever it says of cost and account", async () => {
    const asked = reservation(1n);
    await speech.reserve({ reservations: [asked] });
    const { event } = await server.database
      .selectFrom("hold")
      .select("event")
      .where("id", "=", asked.generationId)
      .executeTakeFirstOrThrow();
    expect(fromEventMessage({ value: event ?? new Uint8Array() })).toMatchObject({
      eventId: asked.generationId,
      accountId: payer.accountId,
      keyHash: payer.keyHash,
      model: "m",
      revision: 0,
      outcome: Outcome.LOST,
      costNanoUsd: 0n,
      listPriceNanoUsd: 0n,
      endedAt: { seconds: asked.deadline?.seconds },
    });
  });

  const tooFarAhead = timestampFromMs(Date.now() + 2 * dayMs);
  const huge = { trace: { text: "x".repeat(66_000) } };
  test.for<[string, () => Partial<Reservation>, string]>([
    ["an id that is none", () => ({ generationId: "x'; --" }), "draft"],
    ["an amount below nothing", () => ({ amountNanoUsd: -1n }), "amount_nano_usd"],
    ["an amount beyond all", () => ({ amountNanoUsd: maxNanoUsd + 1n }), "amount_nano_usd"],
    ["an amount of own keys below nothing", () => ({ byokAmountNanoUsd: -1n }), "byok_amount_nano_usd"],
    ["no principal", () => ({ principal: create(PrincipalSchema) }), "draft"],
    ["no draft", () => ({ draft: undefined as never }), "draft"],
    ["a draft without a beginning", () => ({ draft: draftWith({ startedAt: undefined as never }) }), "draft"],
    ["a draft too large for the topic", () => ({ draft: draftWith(huge) }), "draft"],
    ["no deadline", () => ({ deadline: undefined as never }), "deadline"],
    ["a deadline that hardly comes", () => ({ deadline: tooFarAhead }), "deadline"],
  ])("refuses %s, and all of its batch", async ([, more, field]) => {
    const call = speech.reserve({ reservations: [reservation(1n), reservation(1n, more())] });
    const path = `reservations[1].${field}`;
    expect(await refusalOf(call)).toEqual({ reason: ErrorReason.INVALID_BODY, paths: [path] });
    expect(await moneyOf(server.database, payer)).toMatchObject({ held: 0n });
  });
});

describe("Settle", () => {
  test("answers each event in its place, and the same again", async () => {
    const [open, released] = [await hold(10n), await hold(10n)];
    await speech.release({ holds: [{ generationId: released, accountId: payer.accountId }] });
    const old = realEvent(payer, newGenerationId(), 1n, { endedMs: Date.now() - 399 * dayMs - 60_000 });
    const young = realEvent(payer, newGenerationId(), 1n, { endedMs: Date.now() - 399 * dayMs + 60_000 });
    const malformed = Object.assign(realEvent(payer, newGenerationId(), 1n), { endpointId: "" });
    const lost = lostEvent(payer, await hold(10n), new Date());
    const events = [old, realEvent(payer, open, 7n), malformed, realEvent(payer, released, 7n), lost, young];
    const expected = [
      SettleOutcome.REJECTED,
      SettleOutcome.STORED,
      SettleOutcome.REJECTED,
      SettleOutcome.HOLD_CLOSED,
      SettleOutcome.REJECTED,
      SettleOutcome.HOLD_UNKNOWN,
    ];
    for (let copies = 0; copies < 2; copies++) {
      expect((await speech.settle({ events })).outcomes).toEqual(expected);
    }
    expect(await moneyOf(server.database, payer)).toEqual({ balance: 93n, held: 10n, charged: 7n });
    expect(await server.moneyTotals()).toMatchObject({ closedHoldEvents: 2, unknownHolds: 2 });
  });
});

describe("Release", () => {
  test("gives back what is open, and remembers what nobody heard of", async () => {
    const open = await hold(10n);
    const unheard = reservation(1n);
    const holds = [open, unheard.generationId].map((generationId) => ({
      generationId,
      accountId: payer.accountId,
    }));
    for (let copies = 0; copies < 2; copies++) await speech.release({ holds });
    expect(await moneyOf(server.database, payer)).toEqual({ balance: 100n, held: 0n, charged: 0n });
    const { outcomes } = await speech.reserve({ reservations: [unheard] });
    expect(outcomes).toEqual([ReservationOutcome.CLOSED]);
  });

  test.for([
    ["an id that is none", { generationId: "a b" }, "holds[0].generation_id"],
    ["an account that is none", { accountId: "x" }, "holds[0].account_id"],
  ] as const)("refuses %s", async ([, more, path]) => {
    const release = { generationId: newGenerationId(), accountId: payer.accountId, ...more };
    const refusal = { reason: ErrorReason.INVALID_BODY, paths: [path] };
    expect(await refusalOf(speech.release({ holds: [release] }))).toEqual(refusal);
  });
});

describe.for([
  [
    "reservations",
    (ids: string[]) =>
      speech.reserve({ reservations: ids.map((generationId) => reservation(0n, { generationId })) }),
  ],
  ["events", (ids: string[]) => speech.settle({ events: ids.map((id) => realEvent(payer, id, 0n)) })],
  [
    "holds",
    (ids: string[]) =>
      speech.release({ holds: ids.map((generationId) => ({ generationId, accountId: payer.accountId })) }),
  ],
] as const)("a batch of %s", ([path, send]) => {
  const ids = (count: number) => Array.from({ length: count }, newGenerationId);

  test("has 1 to 256 items with different ids", async () => {
    const refusal = { reason: ErrorReason.INVALID_BODY, paths: [path] };
    const [first = "", second = ""] = ids(2);
    for (const wrong of [[], ids(maxBatchItems + 1), [first, second, first]]) {
      expect(await refusalOf(send(wrong))).toEqual(refusal);
    }
    expect(await refusalOf(send(ids(maxBatchItems)))).toBeUndefined();
  });
});
