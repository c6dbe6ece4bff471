import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { operatorOf } from "../../../lib/identity/caller.ts";
import { type Clock, systemClock } from "../../../lib/runtime/clock.ts";
import { fromProtoAccountKind, toProtoAccount, toProtoAuditEntry, toProtoMember } from "../convert.ts";
import { FieldIssues } from "../field-issues.ts";
import { createCreditAdminHandlers } from "../money/credit-rpc.ts";
import type { ProviderKeyOptions } from "../provider-keys/provider-key-rpc.ts";
import { resealProviderKeys } from "../provider-keys/provider-keys.ts";
import type { AccountDatabase } from "../store.ts";
import {
  addMember,
  createAccount,
  getAccount,
  listAccounts,
  listMembers,
  removeMember,
  updateAccount,
} from "./accounts.ts";
import { createKeyAdminHandlers } from "./admin-key-rpc.ts";
import { checkUuids, readPageSize } from "./admin-requests.ts";
import { listAudit, writeAudit } from "./audit.ts";
import { createConsoleLink } from "./console-links.ts";

/** As many accounts with the longest names as fit an answer of 1 MiB; longer pages are cut there. */
const maxAccountsSent = 800;
/** As many audit entries with the longest notes. */
const maxEntriesSent = 500;

type AdminHandlers = Partial<ServiceImpl<typeof AccountAdminService>>;

interface AdminRpcOptions {
  readonly database: AccountDatabase;
  readonly providerKeys: ProviderKeyOptions;
  /** The most requests a minute that a key may be given. */
  readonly maxRateLimitPerMinute: number;
  readonly clock?: Clock;
}

/** The handlers of AccountAdminService; every change and its audit entry are one transaction. */
export function createAdminHandlers({
  database,
  providerKeys,
  maxRateLimitPerMinute,
  clock = systemClock,
}: AdminRpcOptions): AdminHandlers {
  return {
    ...accountHandlers(database),
    ...memberHandlers(database),
    ...createKeyAdminHandlers({ database, maxRateLimitPerMinute, clock }),
    ...createCreditAdminHandlers(database),
    ...resealHandlers(database, providerKeys),
    async createConsoleLink({ accountId }, context) {
      checkUuids({ account_id: accountId });
      const { code, expiresAt } = await createConsoleLink(database, accountId, operatorOf(context));
      return { code, expiresAt: timestampFromDate(expiresAt) };
    },
    async listAuditEntries({ accountId, beforeId, pageSize }) {
      const limit = Math.min(readPageSize(pageSize), maxEntriesSent);
      if (accountId !== "") checkUuids({ account_id: accountId });
      const rows = await listAudit(database, accountId === "" ? undefined : accountId, beforeId, limit);
      return { entries: rows.map(toProtoAuditEntry) };
    },
  };
}

function accountHandlers(database: AccountDatabase): AdminHandlers {
  return {
    async createAccount(request, context) {
      const operator = operatorOf(context);
      const issues = new FieldIssues();
      const kind = fromProtoAccountKind(request.kind);
      if (kind === undefined) issues.add("kind", "must be personal or organization");
      issues.checkName("name", request.name);
      issues.throwIfAny();
      const row = await database.transaction().execute(async (transaction) => {
        const account = await createAccount(transaction, { kind: kind ?? "personal", name: request.name });
        const { id } = account;
        await writeAudit(transaction, { operator, action: "account.create", accountId: id, subject: id });
        return account;
      });
      return { account: toProtoAccount(row) };
    },
    async updateAccount({ accountId, name, disabled }, context) {
      const operator = operatorOf(context);
      const issues = new FieldIssues();
      issues.checkUuid("account_id", accountId);
      if (name !== undefined) issues.checkName("name", name);
      issues.throwIfAny();
      const row = await database.transaction().execute(async (transaction) => {
        const changed = await updateAccount(transaction, accountId, { name, disabled });
        const audit = { operator, accountId, subject: accountId };
        if (changed.renamed) await writeAudit(transaction, { ...audit, action: "account.rename" });
        const switched = disabled ? "account.disable" : "account.enable";
        if (changed.switched) await writeAudit(transaction, { ...audit, action: switched });
        return changed.row;
      });
      return { account: toProtoAccount(row) };
    },
    async getAccount({ accountId }) {
      checkUuids({ account_id: accountId });
      const row = await getAccount(database, accountId);
      return { account: toProtoAccount(row) };
    },
    async listAccounts({ pageToken, pageSize }) {
      const limit = Math.min(readPageSize(pageSize), maxAccountsSent);
      if (pageToken !== "") checkUuids({ page_token: pageToken });
      const rows = await listAccounts(database, pageToken === "" ? undefined : pageToken, limit + 1);
      const shown = rows.slice(0, limit);
      return {
        accounts: shown.map(toProtoAccount),
        nextPageToken: rows.length > limit ? (shown.at(-1)?.id ?? "") : "",
      };
    },
  };
}

function memberHandlers(database: AccountDatabase): AdminHandlers {
  return {
    async addMember({ accountId, name }, context) {
      const operator = operatorOf(context);
      const issues = new FieldIssues();
      issues.checkUuid("account_id", accountId);
      issues.checkName("name", name);
      issues.throwIfAny();
      const row = await database.transaction().execute(async (transaction) => {
        const member = await addMember(transaction, accountId, name);
        await writeAudit(transaction, { operator, action: "member.add", accountId, subject: member.id });
        return member;
      });
      return { member: toProtoMember(row) };
    },
    async listMembers({ accountId }) {
      checkUuids({ account_id: accountId });
      const rows = await listMembers(database, accountId);
      return { members: rows.map(toProtoMember) };
    },
    async removeMember({ accountId, memberId }, context) {
      const operator = operatorOf(context);
      checkUuids({ account_id: accountId, member_id: memberId });
      const row = await database.transaction().execute(async (transaction) => {
        const removed = await removeMember(transaction, accountId, memberId);
        const note = { operator, action: "member.remove", accountId, subject: memberId } as const;
        if (removed.changed) await writeAudit(transaction, note);
        return removed.row;
      });
      return { member: toProtoMember(row) };
    },
  };
}

function resealHandlers(database: AccountDatabase, providerKeys: ProviderKeyOptions): AdminHandlers {
  return {
    async resealProviderKeys(_request, context) {
      const { sealer } = providerKeys;
      const audit = { operator: operatorOf(context), action: "provider_keys.reseal" } as const;
      const sums = await resealProviderKeys(
        database,
        sealer,
        (transaction, resealed) =>
          writeAudit(transaction, { ...audit, subject: sealer.keyId, note: `${resealed} provider keys` }),
        context.signal,
      );
      return {
        resealed: BigInt(sums.resealed),
        current: BigInt(sums.current),
        unreadable: BigInt(sums.unreadable),
      };
    },
  };
}
