import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AccountBooks, HoldSummary } from "../../../gen/media/account/v1/account_admin_pb.ts";
import type { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { LedgerEntryType } from "../../../gen/media/account/v1/credit_pb.ts";
import { CreditService } from "../../../gen/media/account/v1/credit_service_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import {
  faultsOfBooks,
  holdRequest,
  newGenerationId,
  realEvent,
  settlementOptions,
} from "../../../test/support/services/account-money.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../../test/support/services/account-server.ts";
import { releaseHolds, reserveCredit } from "./holds.ts";
import { settleReported } from "./settlements.ts";

const graceMs = 300_000;
const nobody = "00000000-0000-4000-8000-000000000000";
let server: TestAccountServer;
let admin: Client<typeof AccountAdminService>;
let accountId: string;
let grantId: string;

beforeAll(async () => {
  server = await startTestAccountServer();
  admin = await server.admin();
});
afterAll(() => server.close());

beforeEach(async () => {
  const { account } = await admin.createAccount({ name: "a", kind: 1 });
  accountId = account?.id ?? "";
  grantId = `grant-${accountId}`;
});

async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  return { reason: error?.reason, paths: error?.issues.map(({ path }) => path) };
}

async function audit() {
  const { entries } = await admin.listAuditEntries({ accountId });
  return entries.map(({ operator, action, subject, note }) => ({ operator, action, subject, note }));
}

async function gather<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const gathered: T[] = [];
  for await (const page of pages) gathered.push(page);
  return gathered;
}

async function booksOf(id: string): Promise<AccountBooks[]> {
  return (await gather(admin.listBooks({ accountId: id }))).flatMap(({ books }) => books);
}

describe("a grant", () => {
  test("raises the balance once, and the audit says who gave what and why", async () => {
    const grant = { accountId, amountNanoUsd: 2_500_000_001n, grantId, note: "for the trouble" };
    expect(await admin.grantCredit(grant)).toMatchObject({ balanceNanoUsd: 2_500_000_001n, applied: true });
    expect(await admin.grantCredit({ ...grant, note: "again" })).toMatchObject({
      balanceNanoUsd: 2_500_000_001n,
      applied: false,
    });
    expect(await admin.grantCredit({ accountId, amountNanoUsd: 5n, grantId: `${grantId}-2` })).toMatchObject({
      balanceNanoUsd: 2_500_000_006n,
    });
    expect(await audit()).toEqual([
      { operator: "ada", action: "credit.grant", subject: `${grantId}-2`, note: "0.000000005 USD" },
      { operator: "ada", action: "credit.grant", subject: grantId, note: "2.500000001 USD: for the trouble" },
      { operator: "ada", action: "account.create", subject: accountId, note: "" },
    ]);
    expect(await faultsOfBooks(server.database)).toEqual([]);
  });

  test("that comes many times at once is given once", async () => {
    const grants = Array.from({ length: 12 }, () =>
      admin.grantCredit({ accountId, amountNanoUsd: 7n, grantId }),
    );
    const answers = await Promise.all(grants);
    expect(answers.filter(({ applied }) => applied)).toHaveLength(1);
    expect(answers.map(({ balanceNanoUsd }) => balanceNanoUsd)).toEqual(answers.map(() => 7n));
    expect((await audit()).filter(({ action }) => action === "credit.grant")).toHaveLength(1);
  });

  test("of an id that stands for another account or amount is refused", async () => {
    await admin.grantCredit({ accountId, amountNanoUsd: 7n, grantId });
    const { account } = await admin.createAccount({ name: "b", kind: 1 });
    for (const grant of [
      { accountId, amountNanoUsd: 8n, grantId },
      { accountId: account?.id ?? "", amountNanoUsd: 7n, grantId },
    ]) {
      expect(await refusal(admin.grantCredit(grant))).toEqual({
        reason: ErrorReason.INVALID_BODY,
        paths: ["grant_id"],
      });
    }
    expect((await admin.getAccount({ accountId: account?.id ?? "" })).account?.balanceNanoUsd).toBe(0n);
  });

  test("stands only if its audit entry does", async () => {
    await sql`ALTER TABLE audit ADD CONSTRAINT none CHECK (action <> 'credit.grant') NOT VALID`.execute(
      server.database,
    );
    try {
      const grant = admin.grantCredit({ accountId, amountNanoUsd: 7n, grantId });
      expect((await refusal(grant)).reason).toBe(ErrorReason.INTERNAL);
    } finally {
      await sql`ALTER TABLE audit DROP CONSTRAINT none`.execute(server.database);
    }
    expect((await admin.getAccount({ accountId })).account).toMatchObject({ balanceNanoUsd: 0n });
    expect((await admin.grantCredit({ accountId, amountNanoUsd: 7n, grantId })).applied).toBe(true);
  });

  test.for<[string, object, ErrorReason, string[]]>([
    ["of nothing", { amountNanoUsd: 0n }, ErrorReason.INVALID_BODY, ["amount_nano_usd"]],
    ["below nothing", { amountNanoUsd: -1n }, ErrorReason.INVALID_BODY, ["amount_nano_usd"]],
    ["of too much", { amountNanoUsd: 10n ** 16n + 1n }, ErrorReason.INVALID_BODY, ["amount_nano_usd"]],
    ["without an id", { grantId: "" }, ErrorReason.INVALID_BODY, ["grant_id"]],
    ["with a long id", { grantId: "a".repeat(129) }, ErrorReason.INVALID_BODY, ["grant_id"]],
    ["with blanks in its id", { grantId: "a b" }, ErrorReason.INVALID_BODY, ["grant_id"]],
    ["with a long note", { note: "ä".repeat(257) }, ErrorReason.INVALID_BODY, ["note"]],
    ["with a note of lines", { note: "a\nb" }, ErrorReason.INVALID_BODY, ["note"]],
    ["to nonsense", { accountId: "x" }, ErrorReason.INVALID_BODY, ["account_id"]],
    ["to no account", { accountId: nobody }, ErrorReason.RECORD_UNKNOWN, []],
  ])("%s is refused", async ([, wrong, reason, paths]) => {
    const grant = { accountId, amountNanoUsd: 7n, grantId: `g-${accountId}`, ...wrong };
    expect(await refusal(admin.grantCredit(grant))).toEqual({ reason, paths });
    expect((await audit()).map(({ action }) => action)).toEqual(["account.create"]);
  });
});

/** An account of credit 100 with a key that has spent 30 of it and has 20 on hold. */
async function busyAccount() {
  await admin.grantCredit({ accountId, amountNanoUsd: 100n, grantId });
  const { secret } = await admin.createAccountKey({ accountId, key: { name: "k" } });
  const payer = { accountId, keyHash: hashApiKey(secret) };
  const [spent, open, freed, short] = [30n, 20n, 10n, 1000n].map((amount) => holdRequest(payer, amount));
  if (!spent || !open || !freed || !short) throw new Error("no holds");
  const requests = [spent, open, freed, short];
  const decisions = await reserveCredit(server.database, requests, graceMs);
  expect(decisions).toEqual(["granted", "granted", "granted", "credits"]);
  await settleReported(settlementOptions(server.database), [realEvent(payer, spent.generationId, 30n)]);
  await releaseHolds(server.database, [freed]);
  return { payer, spent, open, freed, short };
}

test("callers see what was granted, charged and held, of their own account alone", async () => {
  await busyAccount();
  const { account } = await admin.createAccount({ name: "b", kind: 1 });
  const creditsOf = async (id: string) => {
    const key = { name: "m", kind: KeyKind.MANAGEMENT };
    const { secret } = await admin.createAccountKey({ accountId: id, key });
    return server.client(CreditService, `Bearer ${secret}`).getCredits({});
  };
  expect(await creditsOf(accountId)).toMatchObject({
    totalCreditsNanoUsd: 100n,
    totalUsageNanoUsd: 30n,
    heldNanoUsd: 20n,
  });
  expect(await creditsOf(account?.id ?? "")).toMatchObject({
    totalCreditsNanoUsd: 0n,
    totalUsageNanoUsd: 0n,
    heldNanoUsd: 0n,
  });
});

describe("the ledger", () => {
  const ledgerOf = async (id: string) => {
    const key = { name: "m", kind: KeyKind.MANAGEMENT };
    const { secret } = await admin.createAccountKey({ accountId: id, key });
    return server.client(CreditService, `Bearer ${secret}`);
  };

  test("shows grants and charges, newest first, of one account alone", async () => {
    const { spent } = await busyAccount();
    const { account } = await admin.createAccount({ name: "b", kind: 1 });
    const ledger = await ledgerOf(accountId);
    const { entries, nextPageToken } = await ledger.listLedgerEntries({});
    expect(entries).toMatchObject([
      { type: LedgerEntryType.CHARGE, amountNanoUsd: 30n, generationId: spent.generationId, grantId: "" },
      { type: LedgerEntryType.GRANT, amountNanoUsd: 100n, generationId: "", grantId },
    ]);
    expect(nextPageToken).toBe("");
    const others = await (await ledgerOf(account?.id ?? "")).listLedgerEntries({});
    expect(others.entries).toEqual([]);
  });

  test("is read to its end by pages of any size, each entry once, while it grows", async () => {
    const grants = Array.from({ length: 7 }, (_, index) => `${grantId}-${index}`);
    for (const id of grants) await admin.grantCredit({ accountId, amountNanoUsd: 1n, grantId: id });
    const ledger = await ledgerOf(accountId);
    for (const pageSize of [1, 2, 3, 7, 100]) {
      const found: string[] = [];
      for (let pageToken = ""; ; ) {
        const page = await ledger.listLedgerEntries({ pageSize, pageToken });
        found.push(...page.entries.map((entry) => entry.grantId));
        pageToken = page.nextPageToken;
        if (pageToken === "") break;
        const newer = `${grantId}-${pageSize}-${found.length}`;
        await admin.grantCredit({ accountId, amountNanoUsd: 1n, grantId: newer });
        grants.push(newer);
      }
      const before = grants.filter((id) => !id.startsWith(`${grantId}-${pageSize}-`));
      expect(found).toEqual(before.toReversed());
    }
  });

  test("is refused for what is no page", async () => {
    const ledger = await ledgerOf(accountId);
    for (const pageToken of ["x", "0", "-1", "1\n", "9".repeat(19)]) {
      expect((await refusal(ledger.listLedgerEntries({ pageToken, pageSize: 101 }))).paths).toEqual([
        "page_token",
        "page_size",
      ]);
    }
  });
});

test("operators see balance and holds of an account, by itself and in the list", async () => {
  await busyAccount();
  const amounts = { grantedNanoUsd: 100n, chargedNanoUsd: 30n, balanceNanoUsd: 70n, heldNanoUsd: 20n };
  const { account } = await admin.getAccount({ accountId });
  expect(account).toMatchObject({ id: accountId, ...amounts });
  const { accounts } = await admin.listAccounts({ pageSize: 1000 });
  expect(accounts.find(({ id }) => id === accountId)).toEqual(account);
  expect(await refusal(admin.getAccount({ accountId: nobody }))).toEqual({
    reason: ErrorReason.RECORD_UNKNOWN,
    paths: [],
  });
  expect((await refusal(admin.getAccount({ accountId: "x" }))).paths).toEqual(["account_id"]);
});

describe("the holds of a span of time", () => {
  const listHolds = async (from: Date, to: Date) =>
    gather(admin.listHolds({ from: timestampFromDate(from), to: timestampFromDate(to) }));

  test("say what became of each", async () => {
    const { spent, open, short } = await busyAccount();
    const pages = await listHolds(new Date(0), new Date("9999-12-31"));
    const found = new Map<string, HoldSummary>();
    for (const { holds } of pages) for (const hold of holds) found.set(hold.generationId, hold);
    expect(found.get(spent.generationId)).toMatchObject({
      accountId,
      state: "settled",
      revision: 1,
      costNanoUsd: 30n,
      debitedNanoUsd: 30n,
      seen: false,
    });
    expect(found.get(open.generationId)).toMatchObject({ state: "open", costNanoUsd: 0n });
    expect(found.get(open.generationId)?.revision).toBeUndefined();
    expect(found.get(short.generationId)?.state).toBe("refused");
  });

  test("come by id over all messages, of which each has 1,000 at most", async () => {
    const from = new Date("2031-01-01T00:00:00Z");
    const to = new Date("2031-01-02T00:00:00Z");
    const ids = Array.from({ length: 2001 }, newGenerationId);
    const rows = ids.map((id) => ({ id, account_id: accountId, state: "released" as const, deadline: from }));
    const outside = { account_id: accountId, state: "released" as const };
    await server.database
      .insertInto("hold")
      .values(
        [
          ...rows,
          { ...outside, id: newGenerationId(), deadline: to },
          { ...outside, id: newGenerationId(), deadline: new Date(from.getTime() - 1) },
        ].map((row) => ({
          refusal: null,
          rate_bucket: null,
          day: null,
          event: null,
          revision: null,
          ...row,
        })),
      )
      .execute();
    const pages = await listHolds(from, to);
    expect(pages.map(({ holds }) => holds.length)).toEqual([1000, 1000, 1]);
    const found = pages.flatMap(({ holds }) => holds.map(({ generationId }) => generationId));
    expect(found).toEqual(ids.sort());
  });

  test("need both ends", async () => {
    expect(await refusal(gather(admin.listHolds({})))).toEqual({
      reason: ErrorReason.INVALID_BODY,
      paths: ["from", "to"],
    });
  });
});

describe("the books", () => {
  const empty = {
    grantedNanoUsd: 0n,
    ledgerGrantedNanoUsd: 0n,
    chargedNanoUsd: 0n,
    ledgerChargedNanoUsd: 0n,
    heldNanoUsd: 0n,
    openHoldsNanoUsd: 0n,
    openHoldsKeyNanoUsd: 0n,
    keyHeldNanoUsd: 0n,
    keyDaysHeldNanoUsd: 0n,
    keySpentNanoUsd: 0n,
    keyDaysSpentNanoUsd: 0n,
    keyByokNanoUsd: 0n,
    keyDaysByokNanoUsd: 0n,
  };

  test("of an account say each sum beside what it stands for", async () => {
    expect(await booksOf(accountId)).toMatchObject([{ accountId, ...empty }]);
    await busyAccount();
    const busy = {
      grantedNanoUsd: 100n,
      ledgerGrantedNanoUsd: 100n,
      chargedNanoUsd: 30n,
      ledgerChargedNanoUsd: 30n,
      heldNanoUsd: 20n,
      openHoldsNanoUsd: 20n,
      openHoldsKeyNanoUsd: 20n,
      keyHeldNanoUsd: 20n,
      keyDaysHeldNanoUsd: 20n,
      keySpentNanoUsd: 30n,
      keyDaysSpentNanoUsd: 30n,
    };
    expect(await booksOf(accountId)).toMatchObject([{ accountId, ...empty, ...busy }]);
    const all = await booksOf("");
    expect(all.find((books) => books.accountId === accountId)).toMatchObject(busy);
    expect(all.map((books) => books.accountId)).toEqual(all.map((books) => books.accountId).sort());
  });

  test("show which sum was tampered with", async () => {
    const { payer } = await busyAccount();
    const { database } = server;
    await sql`UPDATE account SET granted_nano_usd = 101, charged_nano_usd = 31, held_nano_usd = 21
      WHERE id = ${accountId}`.execute(database);
    await sql`UPDATE key_line SET held_nano_usd = 22, spent_nano_usd = 32, byok_nano_usd = 2
      WHERE rate_bucket = ${payer.keyHash}`.execute(database);
    await sql`UPDATE key_line_day SET held_nano_usd = 23, spent_nano_usd = 33, byok_nano_usd = 3
      WHERE rate_bucket = ${payer.keyHash}`.execute(database);
    expect(await booksOf(accountId)).toMatchObject([
      {
        grantedNanoUsd: 101n,
        ledgerGrantedNanoUsd: 100n,
        chargedNanoUsd: 31n,
        ledgerChargedNanoUsd: 30n,
        heldNanoUsd: 21n,
        openHoldsNanoUsd: 20n,
        keyHeldNanoUsd: 22n,
        keyDaysHeldNanoUsd: 23n,
        openHoldsKeyNanoUsd: 20n,
        keySpentNanoUsd: 32n,
        keyDaysSpentNanoUsd: 33n,
        keyByokNanoUsd: 2n,
        keyDaysByokNanoUsd: 3n,
      },
    ]);
  });

  test("of no account there are none", async () => {
    expect((await refusal(booksOf(nobody))).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    expect((await refusal(booksOf("x"))).paths).toEqual(["account_id"]);
  });
});
