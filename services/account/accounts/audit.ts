import type { AccountDatabase, AccountTransaction, AuditRow } from "../store.ts";

/** What an operator did; `subject` names the record it touched and is never a secret. */
interface AuditNote {
  readonly operator: string;
  readonly action:
    | "account.create"
    | "account.rename"
    | "account.disable"
    | "account.enable"
    | "member.add"
    | "member.remove"
    | "key.create"
    | "console_link.create"
    | "console_link.redeem"
    | "key.update"
    | "key.disable"
    | "key.enable"
    | "key.rotate"
    | "credit.grant"
    | "credit.correct"
    | "provider_keys.reseal"
    | "provider.test"
    | "destination.pause"
    | "destination.resume"
    | "destination.test";
  /** Without one it touched no single account. */
  readonly accountId?: string;
  readonly subject: string;
  /** What else there is to say. */
  readonly note?: string;
}

/** Writes an audit entry that stands exactly if the change does. */
export async function writeAudit(
  transaction: AccountTransaction | AccountDatabase,
  note: AuditNote,
): Promise<void> {
  const { operator, action, accountId = null, subject } = note;
  await transaction
    .insertInto("audit")
    .values({ operator, action, account_id: accountId, subject, note: note.note ?? "" })
    .execute();
}

/** A page of the audit, newest first. */
export function listAudit(
  database: AccountDatabase,
  accountId: string | undefined,
  beforeId: bigint | undefined,
  limit: number,
): Promise<AuditRow[]> {
  let entries = database.selectFrom("audit").selectAll();
  if (accountId !== undefined) entries = entries.where("account_id", "=", accountId);
  if (beforeId !== undefined) entries = entries.where("id", "<", beforeId);
  return entries.orderBy("id", "desc").limit(limit).execute();
}
