import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OutgoingMessage } from "../../../lib/events/bus.ts";
import { fromEventMessage } from "../../../lib/events/event-message.ts";
import { ReferenceAccount, type ReferenceRequest } from "../../../test/fakes/reference-account.ts";
import {
  addKey,
  createPayer,
  faultsOfBooks,
  holdRequest,
  lostEvent,
  type MoneyDatabase,
  moneyOf,
  newGenerationId,
  type Payer,
  realEvent,
  settlementOptions,
  shiftDays,
  startMoneyDatabase,
} from "../../../test/support/services/account-money.ts";
import type { AccountDatabase } from "../store.ts";
import { releaseHolds, reserveCredit } from "./holds.ts";
import { publishDue } from "./publish-due.ts";
import { settleConsumed, settleReported } from "./settlements.ts";

/*
 * Random schedules of a few requests over two replicas, each step a transaction that commits or dies before it does,
 * compared after each step with a plain model of what should have become of them.
 */

let world: MoneyDatabase;
let replicas: readonly AccountDatabase[];

beforeAll(async () => {
  world = await startMoneyDatabase();
  replicas = [world.database, world.connect()];
});
afterAll(() => world.close());

type Kind = "reserve" | "reserve late" | "release" | "report" | "consume real" | "consume lost";
const kinds: readonly Kind[] = [
  "reserve",
  "reserve",
  "reserve late",
  "release",
  "report",
  "consume real",
  "consume lost",
];

interface Step {
  readonly kind: Kind | "sweep" | "next day";
  /** The requests that it is about, by their numbers. */
  readonly of: readonly number[];
  readonly replica: number;
  readonly dies: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom<Step["kind"]>(...kinds, ...kinds, "sweep", "next day"),
  of: fc.uniqueArray(fc.nat(2), { minLength: 1, maxLength: 3 }),
  replica: fc.nat(1),
  dies: fc.nat(9).map((chance) => chance < 2),
});

interface Scenario {
  readonly credit: bigint;
  readonly dailyLimit: bigint;
  readonly requests: readonly Omit<ReferenceRequest, "id">[];
  readonly steps: readonly Step[];
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  credit: fc.bigInt({ min: 1n, max: 12n }),
  dailyLimit: fc.bigInt({ min: 0n, max: 8n }),
  requests: fc.array(
    fc.record({
      key: fc.nat(1),
      amount: fc.bigInt({ min: 0n, max: 5n }),
      cost: fc.bigInt({ min: 0n, max: 7n }),
    }),
    { minLength: 3, maxLength: 3 },
  ),
  steps: fc.array(step, { minLength: 5, maxLength: 25 }),
});

/** An account in the database and the model of it. */
interface Pair {
  readonly payers: readonly Payer[];
  readonly requests: readonly ReferenceRequest[];
  readonly reference: ReferenceAccount;
}

async function makePair({ credit, dailyLimit, requests }: Scenario): Promise<Pair> {
  const first = await createPayer(world.database, { credit, limit: dailyLimit, limitReset: "daily" });
  const second = await addKey(world.database, first.accountId);
  const payers = [first, { ...first, keyHash: second, rateBucket: second }];
  const named = requests.map((request) => ({ ...request, id: newGenerationId() }));
  const reference = new ReferenceAccount(credit, [{ dailyLimit }, { dailyLimit: undefined }], named);
  return { payers, requests: named, reference };
}

/** What a step does to the database. */
async function act(
  database: AccountDatabase,
  { payers, requests }: Pair,
  { kind, of }: Step,
): Promise<unknown> {
  const named = of.map((number) => requests[number] as ReferenceRequest);
  const payerOf = ({ key }: ReferenceRequest) => payers[key] as Payer;
  const options = settlementOptions(database);
  const real = () => named.map((request) => realEvent(payerOf(request), request.id, request.cost));
  switch (kind) {
    case "reserve":
    case "reserve late": {
      const deadline = new Date(Date.now() + (kind === "reserve" ? 3_600_000 : -3_600_000));
      const holds = named.map((request) =>
        holdRequest(payerOf(request), request.amount, { generationId: request.id, deadline }),
      );
      return reserveCredit(database, holds, 300_000);
    }
    case "release": {
      const holds = named.map((request) => ({
        generationId: request.id,
        accountId: payerOf(request).accountId,
      }));
      return releaseHolds(database, holds);
    }
    case "report":
      return settleReported(options, real());
    case "consume real":
      return settleConsumed(options, real());
    case "consume lost":
      return settleConsumed(
        options,
        named.map((request) => lostEvent(payerOf(request), request.id, new Date())),
      );
  }
  return undefined;
}

/** What it should do, and answer. */
function actOnReference({ requests, reference }: Pair, { kind, of }: Step): unknown {
  const answers = of.map((number) => {
    const request = requests[number] as ReferenceRequest;
    if (kind === "release") return reference.release(request);
    if (kind === "consume lost") return reference.lost(request);
    if (kind === "report" || kind === "consume real") return reference.real(request, kind === "consume real");
    return reference.reserve(request, kind === "reserve late");
  });
  return kind === "release" ? undefined : answers;
}

/** A step that dies does everything but commit, and its call is not answered. */
async function take(pair: Pair, step: Step): Promise<void> {
  const database = replicas[step.replica] as AccountDatabase;
  if (step.kind === "next day") return nextDay(pair);
  if (step.kind === "sweep") return sweep(database, pair);
  if (!step.dies) expect(await act(database, pair, step)).toEqual(actOnReference(pair, step));
  else {
    const transaction = await database.startTransaction().execute();
    await act(transaction, pair, step);
    await transaction.rollback().execute();
  }
}

/** A day passes: whatever was on a day is one day further back. */
async function nextDay({ payers, reference }: Pair): Promise<void> {
  await shiftDays(world.database, payers[0] as Payer, -1);
  reference.today += 1;
}

/** Everything that waits for its time is due: it is published, and nothing else happens. */
async function sweep(database: AccountDatabase, { requests, reference }: Pair): Promise<void> {
  const ids = requests.map(({ id }) => id);
  await sql`UPDATE hold SET publish_due_at = now() WHERE publish_due_at IS NOT NULL AND id = ANY(${ids})`.execute(
    database,
  );
  const sent: OutgoingMessage[] = [];
  const bus = {
    send: async (_: string, messages: readonly OutgoingMessage[]) => void sent.push(...messages),
  };
  const graces = { holdGraceMs: 3_600_000, unseenGraceMs: 3_600_000 };
  await publishDue({ ...settlementOptions(database), ...graces, bus }, new AbortController().signal);
  const events = sent.flatMap((message) => fromEventMessage(message) ?? []);
  const published = events.filter(({ eventId }) => ids.includes(eventId));
  const due = [...reference.holds].flatMap(([id, { state, seen }]) => {
    if (state === "open") return `${id} 0`;
    return state === "settled" && !seen ? `${id} 1` : [];
  });
  expect(published.map(({ eventId, revision }) => `${eventId} ${revision}`).sort()).toEqual(due.sort());
}

async function compare({ payers, reference }: Pair, credit: bigint): Promise<void> {
  const { database } = world;
  const accountId = payers[0]?.accountId ?? "";
  const today = sql<number>`day - (now() AT TIME ZONE 'UTC')::date`;
  const { charged, held } = reference;
  expect(await moneyOf(database, { accountId })).toEqual({ balance: credit - charged, held, charged });
  const holds = await database
    .selectFrom("hold")
    .select(["id", "state", "refusal", "seen"])
    .where("account_id", "=", accountId)
    .execute();
  const expected = [...reference.holds].map(([id, { state, seen, refusal = null }]) => ({
    id,
    state,
    refusal,
    seen,
  }));
  expect(holds.sort(byId)).toEqual(expected.sort(byId));
  for (const [key, { rateBucket }] of payers.entries()) {
    const days = await database
      .selectFrom("key_line_day")
      .select([today.as("day"), "held_nano_usd as held", "spent_nano_usd as spent"])
      .where("rate_bucket", "=", rateBucket)
      .orderBy("day")
      .execute();
    const ago = reference.daysOf(key).map(({ day, ...sums }) => ({ day: day - reference.today, ...sums }));
    expect(days.filter((day) => day.held > 0n || day.spent > 0n)).toEqual(ago);
  }
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}

test("whatever the schedule, the database is where the model is, to the nano, and replays change nothing", async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (scenario) => {
      const pair = await makePair(scenario);
      for (const step of scenario.steps) {
        await take(pair, step);
        await compare(pair, scenario.credit);
      }
      const everything: readonly Kind[] = ["reserve", "report", "consume lost", "consume real", "release"];
      for (let round = 0; round < 2; round++) {
        for (const kind of everything) await take(pair, { kind, of: [2, 0, 1], replica: round, dies: false });
        await compare(pair, scenario.credit);
      }
      expect(pair.reference.held).toBe(0n);
      expect(await faultsOfBooks(world.database)).toEqual([]);
    }),
    { numRuns: 100, interruptAfterTimeLimit: 60_000 },
  );
}, 120_000);
