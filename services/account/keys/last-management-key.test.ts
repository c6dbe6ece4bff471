import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
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

let server: TestAccountServer;
let accountId: string;
let first: { hash: string; secret: string };
let keys: Client<typeof KeyService>;

beforeAll(async () => {
  server = await startTestAccountServer();
});
afterAll(() => server.close());

beforeEach(async () => {
  const admin = await server.admin();
  const { account } = await admin.createAccount({ name: "Test", kind: AccountKind.PERSONAL });
  accountId = account?.id ?? "";
  const key = { name: "first", kind: KeyKind.MANAGEMENT };
  const { secret } = await admin.createAccountKey({ accountId, key });
  first = { hash: hashApiKey(secret), secret };
  keys = server.client(KeyService, `Bearer ${secret}`);
});

const inHours = (hours: number) => timestampFromMs(Date.now() + hours * 3_600_000);

/** Makes a key that lasts unless it is said to end; its hash. */
async function make(kind: KeyKind = KeyKind.MANAGEMENT, endsInHours?: number) {
  const end = endsInHours === undefined ? {} : { expiresAt: inHours(endsInHours) };
  const { secret } = await keys.createKey({ name: "another", kind, ...end });
  return hashApiKey(secret);
}

function outcomeOf(call: Promise<unknown>): Promise<ErrorReason | "done"> {
  return call.then(
    () => "done",
    (thrown: unknown) => DomainError.from(thrown).reason,
  );
}

const refused = ErrorReason.LAST_MANAGEMENT_KEY;

async function workingKeys(): Promise<number> {
  const { keys: all } = await keys.listKeys({});
  return all.filter(({ kind, expiresAt }) => kind === KeyKind.MANAGEMENT && !expiresAt).length;
}

describe("the last working management key", () => {
  test("is neither deleted nor disabled nor given an end, and goes on working", async () => {
    const { hash, secret } = first;
    await make(KeyKind.INFERENCE);
    expect(await outcomeOf(keys.deleteKey({ hash }))).toBe(refused);
    expect(await outcomeOf(keys.updateKey({ hash, disabled: true }))).toBe(refused);
    expect(await outcomeOf(keys.updateKey({ hash, expiresAt: inHours(1) }))).toBe(refused);
    expect(await outcomeOf(keys.updateKey({ hash, expiresAt: inHours(-1), name: "gone" }))).toBe(refused);
    expect((await keys.getKey({ hash })).key).toMatchObject({ name: "first", disabled: false });
    const internal = server.client(AccountInternalService, await server.tokenOf("gateway"));
    expect(await internal.authenticate({ keyHash: hashApiKey(secret) })).toMatchObject({
      principal: { accountId },
    });
  });

  test("may change otherwise, and be replaced", async () => {
    const { hash } = first;
    await keys.updateKey({ hash, name: "renamed", disabled: false, clearExpiresAt: true });
    const { secret } = await keys.rotateKey({ hash, graceS: 60n });
    expect(await outcomeOf(keys.deleteKey({ hash: hashApiKey(secret) }))).toBe(refused);
    expect(await outcomeOf(keys.deleteKey({ hash }))).toBe("done");
  });

  test.for<[string, (hash: string) => Promise<unknown>]>([
    ["disabled", (hash) => keys.updateKey({ hash, disabled: true })],
    ["expired", (hash) => keys.updateKey({ hash, expiresAt: inHours(-1) })],
    ["about to expire", (hash) => keys.updateKey({ hash, expiresAt: inHours(24) })],
    ["deleted", (hash) => keys.deleteKey({ hash })],
    ["replaced by a disabled one", async (hash) => disableSuccessor(hash)],
  ])("is one beside a key that is %s", async ([, end]) => {
    const other = await make();
    await end(other);
    expect(await outcomeOf(keys.deleteKey({ hash: first.hash }))).toBe(refused);
    expect(await outcomeOf(keys.updateKey({ hash: first.hash, disabled: true }))).toBe(refused);
  });

  async function disableSuccessor(hash: string) {
    const { key } = await keys.rotateKey({ hash, graceS: 3600n });
    await keys.updateKey({ hash: key?.hash ?? "", disabled: true });
  }

  test("of another account is no reason to let go of this one's", async () => {
    const admin = await server.admin();
    const { account } = await admin.createAccount({ name: "Other", kind: AccountKind.PERSONAL });
    const key = { name: "theirs", kind: KeyKind.MANAGEMENT };
    await admin.createAccountKey({ accountId: account?.id ?? "", key });
    expect(await outcomeOf(keys.deleteKey({ hash: first.hash }))).toBe(refused);
  });

  test("of those that end is the one that works longest", async () => {
    const [sooner, later] = [await make(KeyKind.MANAGEMENT, 1), await make(KeyKind.MANAGEMENT, 2)];
    await sql`UPDATE account.api_key SET disabled = true WHERE hash = ${first.hash}`.execute(server.database);
    expect(await outcomeOf(keys.deleteKey({ hash: later }))).toBe(refused);
    expect(await outcomeOf(keys.updateKey({ hash: later, expiresAt: inHours(0.5) }))).toBe(refused);
    expect(await outcomeOf(keys.deleteKey({ hash: sooner }))).toBe("done");
    expect(await outcomeOf(keys.deleteKey({ hash: first.hash }))).toBe("done");
  });

  test("lets every other key go, the one that makes the call included", async () => {
    const other = await make();
    expect(await outcomeOf(keys.deleteKey({ hash: first.hash }))).toBe("done");
    const rows = server.database.selectFrom("api_key").select("hash").where("account_id", "=", accountId);
    expect(await rows.where("deleted_at", "is", null).execute()).toEqual([{ hash: other }]);
  });

  test("of an organization is one beside the key of a member who has left", async () => {
    const admin = await server.admin();
    const { account } = await admin.createAccount({ name: "Org", kind: AccountKind.ORGANIZATION });
    const organization = { accountId: account?.id ?? "" };
    const memberKey = async (name: string) => {
      const { member } = await admin.addMember({ ...organization, name });
      const key = { name, kind: KeyKind.MANAGEMENT, memberId: member?.id ?? "" };
      const { secret } = await admin.createAccountKey({ ...organization, key });
      return { memberId: key.memberId, secret };
    };
    const [ada, bob] = [await memberKey("Ada"), await memberKey("Bob")];
    await admin.removeMember({ ...organization, memberId: bob.memberId });
    const own = server.client(KeyService, `Bearer ${ada.secret}`);
    expect(await outcomeOf(own.deleteKey({ hash: hashApiKey(ada.secret) }))).toBe(refused);
    expect(await outcomeOf(own.deleteKey({ hash: hashApiKey(bob.secret) }))).toBe("done");
  });
});

describe("of two keys that end at once one stays:", () => {
  type End = (hash: string) => Promise<unknown>;
  const ways: Record<string, End> = {
    deleted: (hash) => keys.deleteKey({ hash }),
    disabled: (hash) => keys.updateKey({ hash, disabled: true }),
    "given an end": (hash) => keys.updateKey({ hash, expiresAt: inHours(1) }),
  };

  test.for([
    ["deleted", "deleted"],
    ["deleted", "disabled"],
    ["disabled", "disabled"],
    ["given an end", "deleted"],
  ] as const)("%s, %s", async ([one, two]) => {
    const other = await make();
    // Whoever comes first waits for this lock, with the decision before it or not yet made.
    let blocked: Promise<(ErrorReason | "done")[]> = Promise.resolve([]);
    await server.database.transaction().execute(async (transaction) => {
      const rows = transaction.selectFrom("api_key").select("hash").where("account_id", "=", accountId);
      await rows.forUpdate().execute();
      const calls = [ways[one]?.(first.hash), ways[two]?.(other)].map((call) =>
        outcomeOf(call as Promise<unknown>),
      );
      blocked = Promise.all(calls);
      await waitUntil(async () => {
        const { rows: waiting } = await sql<{ count: string }>`SELECT count(*) AS count FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(server.database);
        return Number(waiting[0]?.count) >= 2;
      });
    });
    const outcomes = await blocked;
    expect([...outcomes].sort()).toEqual([refused, "done"]);
    expect(await workingKeys()).toBe(1);
  });
});
