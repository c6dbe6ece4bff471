import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AccountBooksSchema, HoldSummarySchema } from "../../gen/media/account/v1/account_admin_pb.ts";
import { UsageRecordSummarySchema } from "../../gen/media/usage/v1/usage_pb.ts";
import { compareBooks, compareRequests } from "./compare.ts";

type Fields<S extends Parameters<typeof create>[0]> = Exclude<MessageInitShape<S>, { $typeName: string }>;

const hold = (generationId: string, fields: Fields<typeof HoldSummarySchema> = {}) =>
  create(HoldSummarySchema, {
    generationId,
    accountId: "account-1",
    state: "settled",
    revision: 1,
    costNanoUsd: 5n,
    debitedNanoUsd: 5n,
    seen: true,
    ...fields,
  });
const record = (eventId: string, fields: Fields<typeof UsageRecordSummarySchema> = {}) =>
  create(UsageRecordSummarySchema, {
    eventId,
    accountId: "account-1",
    revision: 1,
    costNanoUsd: 5n,
    date: "2030-01-02",
    ...fields,
  });

async function* streamed<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

async function compare(
  holds: readonly ReturnType<typeof hold>[],
  records: readonly ReturnType<typeof record>[],
) {
  const compared = { holds: 0, records: 0, open: 0, unseen: 0 };
  const days = { from: "2030-01-02", to: "2030-01-03" };
  const found = await Array.fromAsync(compareRequests(streamed(holds), streamed(records), days, compared));
  return { found: found.map(({ subject, what }) => `${subject}: ${what}`), compared };
}

test("requests that both sides state alike do not differ", async () => {
  const { found, compared } = await compare(
    [
      hold("a"),
      hold("b", { state: "released", costNanoUsd: 0n, debitedNanoUsd: 0n }),
      hold("c", { state: "open", costNanoUsd: 0n, debitedNanoUsd: 0n }),
      hold("d", { state: "lost", revision: 0, costNanoUsd: 0n, debitedNanoUsd: 0n }),
      hold("e", { seen: false }),
    ],
    [record("a"), record("d", { revision: 0, costNanoUsd: 0n }), record("e")],
  );
  expect(found).toEqual([]);
  expect(compared).toEqual({ holds: 5, records: 3, open: 1, unseen: 1 });
});

test("every request that one side has alone is named, at either end and between", async () => {
  const { found } = await compare([hold("a"), hold("c"), hold("d")], [record("b"), record("c"), record("e")]);
  expect(found).toEqual([
    "a: its hold is settled and it has no record",
    "b: has a record and no hold",
    "d: its hold is settled and it has no record",
    "e: has a record and no hold",
  ]);
});

test("records of other days are looked at for their holds alone", async () => {
  const others = [record("a", { date: "2030-01-01" }), record("b", { date: "2030-01-04" })];
  expect((await compare([], others)).found).toEqual([]);
  expect((await compare([hold("a"), hold("b")], others)).found).toEqual([]);
});

test.for([
  [{}, { revision: 0 }, "its hold has revision 1 and its record 0"],
  [{}, { costNanoUsd: 6n }, "its hold says 5 nano-USD and its record 6"],
  [{}, { accountId: "account-2" }, "its hold and its record name different accounts"],
  [{ debitedNanoUsd: 4n }, {}, "costs 5 nano-USD by its event, and the ledger debited 4"],
  [{ state: "released" }, {}, "its hold is released and it has a record"],
  [{ state: "open", revision: undefined }, {}, "its hold is open and it has a record"],
] as const)("what differs within one request is named: %o %o", async ([ofHold, ofRecord, what]) => {
  expect((await compare([hold("a", ofHold)], [record("a", ofRecord)])).found).toContain(`a: ${what}`);
});

test("books that add up do not differ, and each sum that does not is named", () => {
  const sound = {
    accountId: "account-1",
    grantedNanoUsd: 100n,
    ledgerGrantedNanoUsd: 100n,
    chargedNanoUsd: 30n,
    ledgerChargedNanoUsd: 30n,
    keySpentNanoUsd: 30n,
    keyDaysSpentNanoUsd: 30n,
    heldNanoUsd: 7n,
    openHoldsNanoUsd: 7n,
    keyHeldNanoUsd: 8n,
    openHoldsKeyNanoUsd: 8n,
    keyDaysHeldNanoUsd: 8n,
    keyByokNanoUsd: 3n,
    keyDaysByokNanoUsd: 3n,
  };
  expect(compareBooks(create(AccountBooksSchema, sound))).toEqual([]);
  for (const name of Object.keys(sound).filter((key) => key !== "accountId")) {
    const differences = compareBooks(create(AccountBooksSchema, { ...sound, [name]: 1_000n }));
    expect(differences.length, name).toBeGreaterThan(0);
    expect(differences[0]).toMatchObject({ subject: "account-1", what: expect.stringContaining("1000") });
  }
});
