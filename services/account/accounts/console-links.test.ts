import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { AccountKind } from "../../../gen/media/account/v1/account_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../../test/support/services/account-server.ts";

let server: TestAccountServer;
let admin: Client<typeof AccountAdminService>;
let gateway: Client<typeof AccountInternalService>;
let accountId: string;

beforeAll(async () => {
  server = await startTestAccountServer();
  admin = await server.admin();
  gateway = server.client(AccountInternalService, await server.tokenOf("gateway"));
});

afterAll(() => server.close());

beforeEach(async () => {
  const { account } = await admin.createAccount({ name: "Atelier", kind: AccountKind.PERSONAL });
  accountId = account?.id ?? "";
});

async function reasonOf(call: Promise<unknown>): Promise<ErrorReason | undefined> {
  return call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown).reason,
  );
}

async function principalOf(secret: string) {
  return (await gateway.authenticate({ keyHash: hashApiKey(secret) })).principal;
}

async function keysOf(account: string): Promise<{ hash: string; deleted: boolean }[]> {
  const rows = await server.database
    .selectFrom("api_key")
    .select(["hash", "deleted_at"])
    .where("account_id", "=", account)
    .execute();
  return rows.map(({ hash, deleted_at }) => ({ hash, deleted: deleted_at !== null }));
}

test("a code is exchanged for a key of each kind, which end in a day", async () => {
  const { code, expiresAt } = await admin.createConsoleLink({ accountId });
  const keys = await gateway.redeemConsoleLink({ code });
  const [inference, management] = [
    await principalOf(keys.inferenceKey),
    await principalOf(keys.managementKey),
  ];
  expect([inference?.keyKind, management?.keyKind]).toEqual([KeyKind.INFERENCE, KeyKind.MANAGEMENT]);
  expect([inference?.accountId, management?.accountId]).toEqual([accountId, accountId]);
  expect(inference?.expiresAt).toEqual(keys.expiresAt);
  expect(management?.expiresAt).toEqual(keys.expiresAt);
  const { rows } = await sql<{ link: boolean; key: boolean }>`
    SELECT ${timestampDate(expiresAt ?? never())} BETWEEN now() + interval '9 minutes' AND now() + interval '10 minutes' AS link,
           ${timestampDate(keys.expiresAt ?? never())} BETWEEN now() + interval '23 hours' AND now() + interval '24 hours' AS key
  `.execute(server.database);
  expect(rows).toEqual([{ link: true, key: true }]);
});

function never(): never {
  throw new Error("the instant is missing");
}

test("of many who bring a code at once one has keys", async () => {
  const { code } = await admin.createConsoleLink({ accountId });
  const reasons = await Promise.all(
    Array.from({ length: 12 }, () => reasonOf(gateway.redeemConsoleLink({ code }))),
  );
  expect(reasons.filter((reason) => reason === undefined)).toHaveLength(1);
  expect(reasons.filter((reason) => reason === ErrorReason.RECORD_UNKNOWN)).toHaveLength(11);
  expect(await keysOf(accountId)).toHaveLength(2);
});

test("a code that is too old, malformed or made up has none", async () => {
  const { code } = await admin.createConsoleLink({ accountId });
  const past = sql<Date>`now() - interval '1 second'`;
  await server.database.updateTable("console_link").set({ expires_at: past }).execute();
  const lastCharacter = code.endsWith("A") ? "B" : "A";
  for (const bad of [code, "short", `${code.slice(0, -1)}${lastCharacter}`, "x".repeat(10_000)]) {
    expect(await reasonOf(gateway.redeemConsoleLink({ code: bad }))).toBe(ErrorReason.RECORD_UNKNOWN);
  }
  expect(await keysOf(accountId)).toEqual([]);
});

test("nothing stored is the code, and the audit tells of it without", async () => {
  const { code } = await admin.createConsoleLink({ accountId });
  const links = await server.database.selectFrom("console_link").selectAll().execute();
  const keys = await gateway.redeemConsoleLink({ code });
  const { entries } = await admin.listAuditEntries({ accountId });
  expect(entries.slice(0, 2).map(({ action, operator }) => [action, operator])).toEqual([
    ["console_link.redeem", "console"],
    ["console_link.create", "ada"],
  ]);
  const written = JSON.stringify([links, entries.map(({ subject, note }) => [subject, note])]);
  for (const secret of [code, keys.inferenceKey, keys.managementKey]) expect(written).not.toContain(secret);
});

test("keys that have expired go with the next link, others stay", async () => {
  const redeem = async () =>
    gateway.redeemConsoleLink({ code: (await admin.createConsoleLink({ accountId })).code });
  const first = await redeem();
  const { secret } = await admin.createAccountKey({ accountId, key: { name: "Website" } });
  const past = sql<Date>`now() - interval '1 second'`;
  await server.database
    .updateTable("api_key")
    .set({ expires_at: past })
    .where("account_id", "=", accountId)
    .execute();
  const second = await redeem();
  const left = (await keysOf(accountId)).filter(({ deleted }) => !deleted).map(({ hash }) => hash);
  const expected = [secret, second.inferenceKey, second.managementKey].map(hashApiKey);
  expect(left.toSorted()).toEqual(expected.toSorted());
  expect(left).not.toContain(hashApiKey(first.inferenceKey));
});

test("an account that is not there has no link, and a key makes none", async () => {
  const nobody = "00000000-0000-4000-8000-000000000000";
  expect(await reasonOf(admin.createConsoleLink({ accountId: nobody }))).toBe(ErrorReason.RECORD_UNKNOWN);
  const speech = server.client(AccountInternalService, await server.tokenOf("speech"));
  expect(await reasonOf(speech.redeemConsoleLink({ code: "x" }))).toBe(ErrorReason.CALLER_NOT_ALLOWED);
});
