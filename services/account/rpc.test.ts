import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { AccountKind } from "../../gen/media/account/v1/account_pb.ts";
import { CreateKeyRequestSchema, KeyKind, KeyScope, LimitReset } from "../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { hashApiKey, isApiKey } from "../../lib/identity/api-key.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { createLog } from "../../lib/runtime/log.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../test/support/services/account-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { fromProtoCreateKeyRequest } from "./keys/key-requests.ts";
import { createKey, maxKeysPerAccount } from "./keys/keys.ts";

const logLines: string[] = [];
let server: TestAccountServer;
let accountId: string;
let managementKey: string;
let keys: Client<typeof KeyService>;
let internal: Client<typeof AccountInternalService>;

beforeAll(async () => {
  const destination = { write: (line: string) => logLines.push(line) };
  server = await startTestAccountServer(createLog({ name: "account", level: "trace", destination }));
  internal = server.client(AccountInternalService, await server.tokenOf("gateway"));
});

afterAll(() => server.close());

beforeEach(async () => {
  ({ accountId, managementKey } = await newAccount());
  keys = server.client(KeyService, `Bearer ${managementKey}`);
});

async function newAccount(kind: AccountKind = AccountKind.PERSONAL) {
  const admin = await server.admin();
  const { account } = await admin.createAccount({ name: "Test", kind });
  const accountId = account?.id ?? "";
  const isOrganization = kind === AccountKind.ORGANIZATION;
  const memberId = isOrganization ? (await admin.addMember({ accountId, name: "A" })).member?.id : "";
  const key = { name: "manage", kind: KeyKind.MANAGEMENT, memberId: memberId ?? "" };
  const { secret } = await admin.createAccountKey({ accountId, key });
  return { accountId, memberId: memberId ?? "", managementKey: secret };
}

async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  if (error === undefined) throw new Error("the call was not refused");
  return error;
}

async function authenticate(key: string) {
  return (await internal.authenticate({ keyHash: hashApiKey(key) })).principal;
}

describe("a key", () => {
  test("is shown once, works, and is known by its hash from then on", async () => {
    const { secret, key } = await keys.createKey({ name: "one", scopes: [KeyScope.SPEECH] });
    expect(isApiKey(secret)).toBe(true);
    expect(key).toMatchObject({
      hash: hashApiKey(secret),
      accountId,
      memberId: "",
      kind: KeyKind.INFERENCE,
      scopes: [KeyScope.SPEECH],
      name: "one",
      label: `${secret.slice(0, 6)}…${secret.slice(-4)}`,
      disabled: false,
      limitReset: LimitReset.UNSPECIFIED,
    });
    expect(key?.updatedAt).toBeUndefined();
    expect(await authenticate(secret)).toMatchObject({
      accountId,
      keyHash: hashApiKey(secret),
      keyName: "one",
      keyKind: KeyKind.INFERENCE,
      scopes: [KeyScope.SPEECH],
      rateBucket: hashApiKey(secret),
      organization: false,
    });
    const used = { ...key, lastUsedAt: expect.anything() };
    expect((await keys.getKey({ hash: hashApiKey(secret) })).key).toEqual(used);
    const own = server.client(KeyService, `Bearer ${secret}`);
    expect((await own.getCurrentKey({})).key).toEqual(used);
  });

  test("knows to the minute when it was used last, and its changes are no use", async () => {
    const { secret, key } = await keys.createKey({ name: "one" });
    const hash = key?.hash ?? "";
    const lastUse = async () => (await keys.getKey({ hash })).key?.lastUsedAt;
    const moveBack = (seconds: number) =>
      sql`UPDATE account.api_key SET last_used_at = last_used_at - make_interval(secs => ${seconds})
        WHERE hash = ${hash}`.execute(server.database);
    await keys.updateKey({ hash, name: "two" });
    expect(await lastUse()).toBeUndefined();
    const before = Date.now();
    await authenticate(secret);
    const first = await lastUse();
    expect(first && timestampMs(first)).toBeGreaterThan(before - 1000);
    await moveBack(50);
    const earlier = await lastUse();
    await authenticate(secret);
    expect(await lastUse()).toEqual(earlier);
    await moveBack(20);
    await authenticate(secret);
    const last = await lastUse();
    expect(last && timestampMs(last)).toBeGreaterThanOrEqual(first ? timestampMs(first) : Infinity);
  });

  test("works while somebody has its record locked; its use is noted later", async () => {
    const { secret, key } = await keys.createKey({ name: "one" });
    await server.database.transaction().execute(async (transaction) => {
      const own = transaction
        .selectFrom("api_key")
        .select("hash")
        .where("hash", "=", key?.hash ?? "");
      await own.forUpdate().execute();
      expect(await authenticate(secret)).toMatchObject({ keyName: "one" });
    });
    expect((await keys.getKey({ hash: key?.hash ?? "" })).key?.lastUsedAt).toBeUndefined();
    await authenticate(secret);
    expect((await keys.getKey({ hash: key?.hash ?? "" })).key?.lastUsedAt).toBeDefined();
  });

  test("of no scopes has them all, and a management key none", async () => {
    const inference = await keys.createKey({ name: "a" });
    expect(inference.key?.scopes).toEqual([KeyScope.SPEECH, KeyScope.IMAGES]);
    const management = await keys.createKey({ name: "b", kind: KeyKind.MANAGEMENT });
    expect(management.key).toMatchObject({ kind: KeyKind.MANAGEMENT, scopes: [] });
  });

  test("has as many requests a minute as the operator allows, and is told when it asks for more", async () => {
    const most = { name: "most", rateLimitPerMinute: 6000 };
    const { key } = await keys.createKey(most);
    const more = { ...most, rateLimitPerMinute: 6001 };
    const { hash = "" } = key ?? {};
    const message = "must not be more than 6000, the most that a key may have here";
    const issues = [{ path: "rate_limit_per_minute", message }];
    for (const call of [() => keys.createKey(more), () => keys.updateKey({ ...more, hash })])
      expect(await refusal(call())).toMatchObject({ reason: ErrorReason.INVALID_BODY, issues });
    expect((await keys.getKey({ hash })).key?.rateLimitPerMinute).toBe(6000);
    const admin = await server.admin();
    const byOperator = await refusal(admin.createAccountKey({ accountId, key: more }));
    expect(byOperator.issues).toMatchObject([{ path: "key.rate_limit_per_minute", message }]);
  });

  test("keeps its limits", async () => {
    const expiresAt = timestampFromMs(Date.now() + 3_600_000);
    const limits = {
      limitNanoUsd: 2n ** 62n,
      limitReset: LimitReset.WEEKLY,
      includeByokInLimit: true,
      rateLimitPerMinute: 7,
      expiresAt,
    };
    const { secret, key } = await keys.createKey({ name: "limited", ...limits });
    expect(key).toMatchObject({ ...limits, limitRemainingNanoUsd: 2n ** 62n });
    expect(await authenticate(secret)).toMatchObject({ rateLimitPerMinute: 7, expiresAt });
    const { key: cleared } = await keys.updateKey({
      hash: key?.hash ?? "",
      clearLimit: true,
      limitNanoUsd: 5n,
      clearExpiresAt: true,
      clearRateLimit: true,
      limitReset: LimitReset.UNSPECIFIED,
    });
    expect(cleared?.limitNanoUsd).toBeUndefined();
    expect(cleared?.limitRemainingNanoUsd).toBeUndefined();
    expect(cleared?.expiresAt).toBeUndefined();
    expect(cleared?.rateLimitPerMinute).toBeUndefined();
    expect(cleared).toMatchObject({ limitReset: LimitReset.UNSPECIFIED, includeByokInLimit: true });
    expect(cleared?.updatedAt).toBeDefined();
  });

  test("is refused while it is disabled", async () => {
    const { secret, key } = await keys.createKey({ name: "one" });
    const hash = key?.hash ?? "";
    await keys.updateKey({ hash, disabled: true, name: "off" });
    expect((await refusal(authenticate(secret))).reason).toBe(ErrorReason.KEY_DISABLED);
    expect((await keys.getKey({ hash })).key).toMatchObject({ disabled: true, name: "off" });
    await keys.updateKey({ hash, disabled: false });
    expect(await authenticate(secret)).toMatchObject({ keyName: "off" });
  });

  test("is refused once it has expired", async () => {
    const { secret, key } = await keys.createKey({ name: "one" });
    await keys.updateKey({ hash: key?.hash ?? "", expiresAt: timestampFromMs(Date.now() - 1000) });
    expect((await refusal(authenticate(secret))).reason).toBe(ErrorReason.KEY_EXPIRED);
  });

  test("is gone once it is deleted, and its hash can't come back", async () => {
    const { secret, key } = await keys.createKey({ name: "one" });
    const hash = key?.hash ?? "";
    await keys.deleteKey({ hash });
    expect((await refusal(authenticate(secret))).reason).toBe(ErrorReason.KEY_UNKNOWN);
    for (const call of [
      () => keys.getKey({ hash }),
      () => keys.updateKey({ hash, name: "b" }),
      () => keys.deleteKey({ hash }),
    ]) {
      expect((await refusal(call())).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    }
    const rows = await server.database
      .selectFrom("api_key")
      .select("hash")
      .where("hash", "=", hash)
      .execute();
    expect(rows).toHaveLength(1);
  });

  test("of another account does not exist", async () => {
    const other = server.client(KeyService, `Bearer ${(await newAccount()).managementKey}`);
    const { secret, key } = await keys.createKey({ name: "one" });
    const hash = key?.hash ?? "";
    for (const call of [
      () => other.getKey({ hash }),
      () => other.updateKey({ hash, disabled: true }),
      () => other.deleteKey({ hash }),
    ]) {
      expect((await refusal(call())).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    }
    expect((await other.listKeys({})).keys.map(({ hash }) => hash)).not.toContain(hash);
    expect(await authenticate(secret)).toMatchObject({ accountId });
  });
});

test("keys are listed newest first, a page at a time, disabled ones when asked for", async () => {
  const made: string[] = [];
  for (const name of ["a", "b", "c"]) made.unshift((await keys.createKey({ name })).key?.hash ?? "");
  const [, disabled = ""] = made;
  await keys.updateKey({ hash: disabled, disabled: true });
  const all = [...made, hashApiKey(managementKey)];
  const hashesOf = async (request: object) => {
    const { keys: page, totalCount } = await keys.listKeys(request);
    return [page.map(({ hash }) => hash), totalCount];
  };
  expect(await hashesOf({ includeDisabled: true })).toEqual([all, 4n]);
  expect(await hashesOf({})).toEqual([all.filter((hash) => hash !== disabled), 3n]);
  expect(await hashesOf({ includeDisabled: true, offset: 1, limit: 2 })).toEqual([all.slice(1, 3), 4n]);
  expect(await hashesOf({ offset: 9 })).toEqual([[], 3n]);
});

test("an account has no more keys than it may, also when the last one is just being made", async () => {
  await sql`INSERT INTO api_key (hash, account_id, kind, scopes, name, label, rate_bucket)
    SELECT h, ${accountId}::uuid, 'inference', '{speech}', 'n', 'l', h
    FROM (SELECT encode(sha256((${accountId} || i::text)::bytea), 'hex') AS h
      FROM generate_series(1, ${maxKeysPerAccount - 2}) AS i) AS made`.execute(server.database);
  const isWaiting = async () => {
    const { rows } = await sql`SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(server.database);
    return rows.length > 0;
  };
  const tooMany = await server.database.transaction().execute(async (transaction) => {
    await createKey(
      transaction,
      accountId,
      fromProtoCreateKeyRequest(create(CreateKeyRequestSchema, { name: "last" }), {
        nowMs: 0,
        maxRateLimitPerMinute: 1,
      }),
    );
    const refused = refusal(keys.createKey({ name: "too many" }));
    await waitUntil(isWaiting);
    return { refused };
  });
  expect((await tooMany.refused).reason).toBe(ErrorReason.COUNT_LIMIT_REACHED);
});

describe("members", () => {
  test("have keys of their own, made by their own keys or for a colleague", async () => {
    const organization = await newAccount(AccountKind.ORGANIZATION);
    const own = server.client(KeyService, `Bearer ${organization.managementKey}`);
    const { secret, key } = await own.createKey({ name: "mine" });
    expect(key?.memberId).toBe(organization.memberId);
    expect(await authenticate(secret)).toMatchObject({
      memberId: organization.memberId,
      organization: true,
    });
    const admin = await server.admin();
    const { member } = await admin.addMember({ accountId: organization.accountId, name: "B" });
    const colleague = await own.createKey({ name: "theirs", memberId: member?.id ?? "" });
    expect(colleague.key?.memberId).toBe(member?.id);
  });

  test("of other accounts and personal accounts get none", async () => {
    const organization = await newAccount(AccountKind.ORGANIZATION);
    const other = await newAccount(AccountKind.ORGANIZATION);
    const own = server.client(KeyService, `Bearer ${organization.managementKey}`);
    for (const call of [
      () => own.createKey({ name: "a", memberId: other.memberId }),
      () => keys.createKey({ name: "a", memberId: other.memberId }),
    ]) {
      expect(await refusal(call())).toMatchObject({
        reason: ErrorReason.INVALID_BODY,
        issues: [expect.objectContaining({ path: "member_id" })],
      });
    }
  });
});

describe("a request is refused with each fault named", () => {
  const hash = "0".repeat(64);
  test.for<[string, () => Promise<unknown>, string[]]>([
    ["no name", () => keys.createKey({}), ["name"]],
    ["blank name", () => keys.createKey({ name: "  " }), ["name"]],
    ["long name", () => keys.createKey({ name: "ä".repeat(257) }), ["name"]],
    ["control character", () => keys.createKey({ name: "a\0b" }), ["name"]],
    ["kind", () => keys.createKey({ name: "a", kind: 9 as KeyKind }), ["kind"]],
    ["scope", () => keys.createKey({ name: "a", scopes: [1, 0, 7 as KeyScope] }), ["scopes.1", "scopes.2"]],
    ["scopes of management", () => keys.createKey({ name: "a", kind: 2, scopes: [1] }), ["scopes"]],
    [
      "many scopes",
      () => keys.createKey({ name: "a", scopes: Array.from({ length: 99 }, () => 1) }),
      ["scopes"],
    ],
    ["past expiry", () => keys.createKey({ name: "a", expiresAt: timestampFromMs(1000) }), ["expires_at"]],
    ["wild expiry", () => keys.createKey({ name: "a", expiresAt: { seconds: 1n << 60n } }), ["expires_at"]],
    [
      "several",
      () => keys.createKey({ limitNanoUsd: -1n, limitReset: 8 as LimitReset, rateLimitPerMinute: 0 }),
      ["name", "limit_nano_usd", "rate_limit_per_minute", "limit_reset"],
    ],
    [
      "limits of management",
      () => keys.createKey({ name: "a", kind: 2, limitNanoUsd: 1n, rateLimitPerMinute: 1 }),
      ["limit_nano_usd", "rate_limit_per_minute"],
    ],
    ["member", () => keys.createKey({ name: "a", memberId: "x" }), ["member_id"]],
    ["hash", () => keys.getKey({ hash: "A".repeat(64) }), ["hash"]],
    ["hash to change", () => keys.updateKey({ hash: "" }), ["hash"]],
    ["hash to delete", () => keys.deleteKey({ hash: `${hash}0` }), ["hash"]],
    ["changed name", () => keys.updateKey({ hash, name: "" }), ["name"]],
    ["changed limit", () => keys.updateKey({ hash, limitNanoUsd: -1n }), ["limit_nano_usd"]],
    [
      "limit of management",
      () => keys.updateKey({ hash: hashApiKey(managementKey), limitNanoUsd: 1n }),
      ["limit_nano_usd"],
    ],
    ["page", () => keys.listKeys({ offset: -1, limit: 101 }), ["offset", "limit"]],
    ["empty page", () => keys.listKeys({ limit: 0 }), ["limit"]],
    ["hash to authenticate", () => internal.authenticate({ keyHash: "x" }), ["key_hash"]],
  ])("%s", async ([, call, paths]) => {
    const { reason, issues } = await refusal(call());
    expect(reason).toBe(ErrorReason.INVALID_BODY);
    expect(issues.map(({ path }) => path)).toEqual(paths);
  });
});

test("no table and no log line has a key in it, wherever it came from", async () => {
  const { secret } = await keys.createKey({ name: "one" });
  const own = server.client(KeyService, `Bearer ${secret}`);
  await own.getCurrentKey({});
  await refusal(own.listKeys({}));
  await refusal(keys.updateKey({ hash: hashApiKey(secret), name: "" }));
  await refusal(own.getKey({ hash: hashApiKey(secret) }));
  const { rows: tables } = await sql<{ name: string }>`SELECT format('%I.%I', schemaname, tablename) AS name
    FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`.execute(server.database);
  expect(tables.map(({ name }) => name)).toContain("account.api_key");
  const stored: string[] = [];
  for (const { name } of tables) {
    const { rows } = await sql<{ row: string }>`SELECT t::text AS row FROM ${sql.raw(name)} AS t`.execute(
      server.database,
    );
    stored.push(...rows.map(({ row }) => row));
  }
  const text = stored.join("\n");
  expect(text).toContain(hashApiKey(secret));
  const logged = logLines.join("\n");
  expect(logged).toContain("management_key_required");
  for (const key of [secret, managementKey]) {
    expect(text).not.toContain(key.slice(3, 23));
    expect(logged).not.toContain(key.slice(3, 23));
  }
});
