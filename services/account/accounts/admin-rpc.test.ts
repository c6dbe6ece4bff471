import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { AccountKind } from "../../../gen/media/account/v1/account_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../../test/support/services/account-server.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { removeMember } from "./accounts.ts";

const nobody = "00000000-0000-4000-8000-000000000000";
let server: TestAccountServer;
let admin: Client<typeof AccountAdminService>;
let accountId: string;

beforeAll(async () => {
  server = await startTestAccountServer();
  admin = await server.admin();
});

afterAll(() => server.close());

beforeEach(async () => {
  const { account } = await admin.createAccount({ name: "Atelier", kind: AccountKind.ORGANIZATION });
  accountId = account?.id ?? "";
});

async function addMember(name = "A"): Promise<string> {
  return (await admin.addMember({ accountId, name })).member?.id ?? "";
}

async function reasonOf(call: Promise<unknown>): Promise<ErrorReason | undefined> {
  return call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown).reason,
  );
}

async function authenticate(secret: string) {
  const gateway = server.client(AccountInternalService, await server.tokenOf("gateway"));
  return (await gateway.authenticate({ keyHash: hashApiKey(secret) })).principal;
}

async function auditActions(): Promise<string[]> {
  const { entries } = await admin.listAuditEntries({ accountId });
  return entries.map(({ action }) => action);
}

test("accounts are listed oldest first, a page at a time", async () => {
  for (const name of ["b", "c"]) await admin.createAccount({ name, kind: AccountKind.PERSONAL });
  const found: string[] = [];
  let pageToken = "";
  do {
    const page = await admin.listAccounts({ pageToken, pageSize: 2 });
    expect(page.accounts.length).toBeLessThanOrEqual(2);
    found.push(...page.accounts.map(({ id }) => id));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  const rows = await server.database.selectFrom("account").select("id").orderBy("created_at").execute();
  expect(found).toEqual(rows.map(({ id }) => id));
  expect(found).toContain(accountId);
});

describe("a member who is removed", () => {
  test("has no key that works, and gets none again", async () => {
    const memberId = await addMember();
    const key = { name: "a", kind: KeyKind.MANAGEMENT, memberId };
    const { secret } = await admin.createAccountKey({ accountId, key });
    expect(await authenticate(secret)).toMatchObject({ memberId, organization: true });
    const { member } = await admin.removeMember({ accountId, memberId });
    expect(member?.removedAt).toBeDefined();
    expect(await reasonOf(authenticate(secret))).toBe(ErrorReason.KEY_DISABLED);
    expect(await reasonOf(admin.createAccountKey({ accountId, key }))).toBe(ErrorReason.INVALID_BODY);
    const colleagueId = await addMember("B");
    const colleague = await admin.createAccountKey({ accountId, key: { ...key, memberId: colleagueId } });
    const keys = server.client(KeyService, `Bearer ${colleague.secret}`);
    const enable = keys.updateKey({ hash: hashApiKey(secret), disabled: false });
    expect(await reasonOf(enable)).toBe(ErrorReason.INVALID_BODY);
    const { members } = await admin.listMembers({ accountId });
    expect(members.map(({ id, removedAt }) => [id, removedAt !== undefined])).toEqual([
      [memberId, true],
      [colleagueId, false],
    ]);
  });

  test("gets no key that was asked for meanwhile", async () => {
    const memberId = await addMember();
    const isWaiting = async () => {
      const { rows } = await sql`SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(server.database);
      return rows.length > 0;
    };
    const creation = await server.database.transaction().execute(async (transaction) => {
      await removeMember(transaction, accountId, memberId);
      const reason = reasonOf(admin.createAccountKey({ accountId, key: { name: "a", memberId } }));
      await waitUntil(isWaiting);
      return { reason };
    });
    expect(await creation.reason).toBe(ErrorReason.INVALID_BODY);
    const keys = server.database.selectFrom("api_key").selectAll().where("member_id", "=", memberId);
    expect(await keys.execute()).toEqual([]);
  });

  test("twice is removed once", async () => {
    const memberId = await addMember();
    const first = await admin.removeMember({ accountId, memberId });
    expect(await admin.removeMember({ accountId, memberId })).toEqual(first);
    expect(await auditActions()).toEqual(["member.remove", "member.add", "account.create"]);
  });
});

describe("the audit", () => {
  test("says who changed what, newest first, without a secret", async () => {
    const memberId = await addMember();
    const { secret, key } = await admin.createAccountKey({ accountId, key: { name: "a", memberId } });
    const { entries } = await admin.listAuditEntries({ accountId });
    expect(entries.map(({ operator, action, subject }) => [operator, action, subject])).toEqual([
      ["ada", "key.create", key?.hash],
      ["ada", "member.add", memberId],
      ["ada", "account.create", accountId],
    ]);
    expect(
      JSON.stringify(entries, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
    ).not.toContain(secret);
    const [, second] = entries;
    const { entries: older } = await admin.listAuditEntries({ accountId, beforeId: second?.id ?? 0n });
    expect(older).toEqual(entries.slice(2));
    expect((await admin.listAuditEntries({ pageSize: 1 })).entries).toEqual(entries.slice(0, 1));
  });

  test("has nothing of a change that was refused", async () => {
    expect(await reasonOf(admin.createAccountKey({ accountId, key: { name: "a" } }))).toBe(
      ErrorReason.INVALID_BODY,
    );
    expect(await auditActions()).toEqual(["account.create"]);
  });

  test("stands only if the change does", async () => {
    await sql`ALTER TABLE audit ADD CONSTRAINT none CHECK (action <> 'member.add') NOT VALID`.execute(
      server.database,
    );
    try {
      expect(await reasonOf(addMember())).toBe(ErrorReason.INTERNAL);
    } finally {
      await sql`ALTER TABLE audit DROP CONSTRAINT none`.execute(server.database);
    }
    expect((await admin.listMembers({ accountId })).members).toEqual([]);
  });
});

describe("is refused", () => {
  test.for<[string, () => Promise<unknown>, ErrorReason]>([
    ["an account without kind", () => admin.createAccount({ name: "a" }), ErrorReason.INVALID_BODY],
    ["an account without name", () => admin.createAccount({ kind: 1 }), ErrorReason.INVALID_BODY],
    ["a page of none", () => admin.listAccounts({ pageSize: 0 }), ErrorReason.INVALID_BODY],
    [
      "a page token of ours that is none",
      () => admin.listAccounts({ pageToken: "x" }),
      ErrorReason.INVALID_BODY,
    ],
    ["a member without name", () => admin.addMember({ accountId }), ErrorReason.INVALID_BODY],
    [
      "a member of no account",
      () => admin.addMember({ accountId: nobody, name: "a" }),
      ErrorReason.RECORD_UNKNOWN,
    ],
    ["members of no account", () => admin.listMembers({ accountId: nobody }), ErrorReason.RECORD_UNKNOWN],
    ["members of nonsense", () => admin.listMembers({ accountId: "x'" }), ErrorReason.INVALID_BODY],
    [
      "to remove no one",
      () => admin.removeMember({ accountId, memberId: nobody }),
      ErrorReason.RECORD_UNKNOWN,
    ],
    [
      "a key of no account",
      () => admin.createAccountKey({ accountId: nobody, key: { name: "a" } }),
      ErrorReason.RECORD_UNKNOWN,
    ],
    ["a key of nothing", () => admin.createAccountKey({ accountId }), ErrorReason.INVALID_BODY],
    ["a long audit", () => admin.listAuditEntries({ pageSize: 1001 }), ErrorReason.INVALID_BODY],
  ])("%s", async ([, call, reason]) => {
    expect(await reasonOf(call())).toBe(reason);
  });

  test("a member of a personal account", async () => {
    const { account } = await admin.createAccount({ name: "a", kind: AccountKind.PERSONAL });
    const call = admin.addMember({ accountId: account?.id ?? "", name: "a" });
    expect(await reasonOf(call)).toBe(ErrorReason.INVALID_BODY);
  });
});
