import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  CorrectCreditRequest,
  GrantCreditRequest,
  ListHoldsRequest,
} from "../../../gen/media/account/v1/account_admin_pb.ts";
import type { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import {
  type LedgerEntrySchema,
  LedgerEntryType,
  type ListLedgerEntriesRequest,
} from "../../../gen/media/account/v1/credit_pb.ts";
import type { CreditService } from "../../../gen/media/account/v1/credit_service_pb.ts";
import { operatorOf, principalOf } from "../../../lib/identity/caller.ts";
import { cursorPage } from "../../../lib/limits/cursor-page.ts";
import { nanoUsdPerUsd } from "../../../lib/money/nano-usd.ts";
import { getAccount } from "../accounts/accounts.ts";
import { checkUuids } from "../accounts/admin-requests.ts";
import { FieldIssues } from "../field-issues.ts";
import type { AccountDatabase } from "../store.ts";
import { listBooks } from "./books.ts";
import { moveWithAudit } from "./credits.ts";
import { type HoldRange, type HoldRecord, listHolds } from "./holds.ts";
import { type LedgerRow, listLedger } from "./list-ledger.ts";

/** The handlers of CreditService; each answers for the account of the calling key alone. */
export function createCreditHandlers(database: AccountDatabase): Partial<ServiceImpl<typeof CreditService>> {
  return {
    async getCredits(_request, context) {
      const account = await getAccount(database, principalOf(context).accountId);
      return {
        totalCreditsNanoUsd: account.granted_nano_usd,
        totalUsageNanoUsd: account.charged_nano_usd,
        heldNanoUsd: account.held_nano_usd,
      };
    },
    async listLedgerEntries(request, context) {
      const { accountId } = principalOf(context);
      const page = await listLedger(database, { accountId, ...readLedgerPage(request) });
      return { entries: page.rows.map(toProtoEntry), nextPageToken: page.nextId?.toString() ?? "" };
    },
  };
}

/** What was asked for of the ledger. Throws `invalid_body`. */
function readLedgerPage({ pageToken, pageSize }: ListLedgerEntriesRequest) {
  const issues = new FieldIssues();
  if (pageToken !== "" && !/^[1-9]\d{0,17}$/.test(pageToken)) {
    issues.add("page_token", "must come from the page before");
  }
  const limit = pageSize === 0 ? cursorPage.limit.default : pageSize;
  issues.checkInteger("page_size", limit, 1, cursorPage.limit.maximum);
  issues.throwIfAny();
  return { beforeId: pageToken === "" ? undefined : BigInt(pageToken), limit };
}

function toProtoEntry(row: LedgerRow): MessageInitShape<typeof LedgerEntrySchema> {
  return {
    createdAt: timestampFromDate(row.at),
    type: entryType(row),
    amountNanoUsd: row.amount_nano_usd,
    generationId: row.generation_id ?? "",
    grantId: row.grant_id ?? "",
  };
}

function entryType({ grant_id, debit }: LedgerRow): LedgerEntryType {
  if (grant_id === null) return LedgerEntryType.CHARGE;
  return debit === "granted" ? LedgerEntryType.GRANT : LedgerEntryType.CORRECTION;
}

/** 10 million USD: what an account has been granted stays far below what a bigint holds. */
const maxMoveNanoUsd = 10_000_000n * nanoUsdPerUsd;
const moveIdPattern = /^[\x21-\x7e]{1,128}$/;
const moveIdForm = "must be 1 to 128 visible ASCII characters";

type CreditAdminRpcs = "grantCredit" | "correctCredit" | "listHolds" | "listBooks";

/** The handlers of AccountAdminService that are about credit. */
export function createCreditAdminHandlers(
  database: AccountDatabase,
): Pick<ServiceImpl<typeof AccountAdminService>, CreditAdminRpcs> {
  return {
    async grantCredit(request, context) {
      const operator = operatorOf(context);
      checkGrant(request);
      const { accountId, amountNanoUsd, grantId: moveId, note } = request;
      const grant = { accountId, amountNanoUsd, moveId };
      return database
        .transaction()
        .execute((transaction) => moveWithAudit(transaction, grant, { operator, note }));
    },
    async correctCredit(request, context) {
      const operator = operatorOf(context);
      checkCorrection(request);
      const { accountId, amountNanoUsd, correctionId: moveId, reason: note } = request;
      const correction = { accountId, amountNanoUsd: -amountNanoUsd, moveId };
      return database
        .transaction()
        .execute((transaction) => moveWithAudit(transaction, correction, { operator, note }));
    },
    async *listHolds(request, { signal }) {
      for await (const holds of listHolds(database, readRange(request), signal)) {
        yield { holds: holds.map(toProtoHold) };
      }
    },
    async *listBooks({ accountId }, { signal }) {
      if (accountId !== "") checkUuids({ account_id: accountId });
      for await (const books of listBooks(database, accountId === "" ? undefined : accountId, signal)) {
        yield { books: [...books] };
      }
    },
  };
}

function checkGrant({ accountId, amountNanoUsd, grantId, note }: GrantCreditRequest): void {
  const issues = new FieldIssues();
  checkMove(issues, accountId, amountNanoUsd);
  if (!moveIdPattern.test(grantId)) issues.add("grant_id", moveIdForm);
  if (note !== "") issues.checkName("note", note);
  issues.throwIfAny();
}

function checkCorrection({ accountId, amountNanoUsd, correctionId, reason }: CorrectCreditRequest): void {
  const issues = new FieldIssues();
  checkMove(issues, accountId, amountNanoUsd);
  if (!moveIdPattern.test(correctionId)) issues.add("correction_id", moveIdForm);
  issues.checkName("reason", reason);
  issues.throwIfAny();
}

function checkMove(issues: FieldIssues, accountId: string, amountNanoUsd: bigint): void {
  issues.checkUuid("account_id", accountId);
  if (amountNanoUsd <= 0n || amountNanoUsd > maxMoveNanoUsd) {
    issues.add("amount_nano_usd", "must be above 0 and at most 10,000,000 USD");
  }
}

function readRange(request: ListHoldsRequest): HoldRange {
  const issues = new FieldIssues();
  const read = (path: "from" | "to") => {
    const instant = request[path];
    if (instant !== undefined) return issues.toDate(path, instant);
    issues.add(path, "is required");
    return undefined;
  };
  const from = read("from");
  const to = read("to");
  issues.throwIfAny();
  return { from: from ?? new Date(0), to: to ?? new Date(0) };
}

function toProtoHold({ revision, deadline, ...hold }: HoldRecord) {
  return { ...hold, deadline: timestampFromDate(deadline), ...(revision === null ? {} : { revision }) };
}
