import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { AccountKind } from "../../../gen/media/account/v1/account_pb.ts";
import { type Key, KeyKind, KeyScope, LimitReset } from "../../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { holdRequest, realEvent, settlementOptions } from "../../../test/support/services/account-money.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../../test/support/services/account-server.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { type HoldDecision, reserveCredit } from "../money/holds.ts";
import { settleReported } from "../money/settlements.ts";
import { maxKeysPerAccount } from "./keys.ts";

const hourS = 3600n;
let server: TestAccountServer;
let internal: Client<typeof AccountInternalService>;
let keys: Client<typeof KeyService>;
let accountId: string;
let managementKey: string;

beforeAll(async () => {
  server = await startTestAccountServer();
  internal = server.client(AccountInternalService, await server.tokenOf("speech"));
});
afterAll(() => server.close());

beforeEach(async () => {
  const admin = await server.admin();
  const { account } = await admin.createAccount({ name: "a", kind: AccountKind.PERSONAL });
  accountId = account?.id ?? "";
  await admin.grantCredit({ accountId, amountNanoUsd: 1000n, grantId: `first-${accountId}` });
  const key = { name: "manage", kind: KeyKind.MANAGEMENT };
  managementKey = (await admin.createAccountKey({ accountId, key })).secret;
  keys = server.client(KeyService, `Bearer ${managementKey}`);
});

async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  if (error === undefined) throw new Error("the call was not refused");
  const { reason, issues } = error;
  return { reason, messages: issues.map(({ path, message }) => `${path} ${message}`) };
}

const principalOf = async (secret: string) =>
  (await internal.authenticate({ keyHash: hashApiKey(secret) })).principal;

const shown = async (hash: string): Promise<Key | undefined> => (await keys.getKey({ hash })).key;

async function reserve(secret: string, amount: bigint): Promise<HoldDecision | undefined> {
  const request = holdRequest({ accountId, keyHash: hashApiKey(secret) }, amount);
  return (await reserveCredit(server.database, [request], 300_000))[0];
}

async function spend(secret: string, cost: bigint, byokPrice = 0n): Promise<void> {
  const payer = { accountId, keyHash: hashApiKey(secret) };
  const request = holdRequest(payer, cost, { byokAmountNanoUsd: byokPrice });
  expect(await reserveCredit(server.database, [request], 300_000)).toEqual(["granted"]);
  const own = byokPrice > 0n ? { byok: true, listPriceNanoUsd: byokPrice } : {};
  const event = realEvent(payer, request.generationId, cost, own);
  expect(await settleReported(settlementOptions(server.database), [event])).toEqual(["stored"]);
}

describe("a successor", () => {
  test("is a key like the old one, works at once, and so does the old one for the grace period", async () => {
    const expiresAt = timestampFromMs(Date.now() + 7_200_000);
    const limits = { limitNanoUsd: 500n, limitReset: LimitReset.MONTHLY, includeByokInLimit: true };
    const wanted = { name: "robot", scopes: [KeyScope.SPEECH], rateLimitPerMinute: 7, expiresAt, ...limits };
    const old = await keys.createKey(wanted);
    const oldHash = old.key?.hash ?? "";
    const startedMs = Date.now();
    const { secret, key } = await keys.rotateKey({ hash: oldHash, graceS: hourS });
    const hash = hashApiKey(secret);
    expect(key).toMatchObject({
      ...wanted,
      hash,
      accountId,
      memberId: "",
      kind: KeyKind.INFERENCE,
      disabled: false,
    });
    expect(key?.label).toBe(`${secret.slice(0, 6)}…${secret.slice(-4)}`);
    expect(key?.updatedAt).toBeUndefined();
    for (const each of [secret, old.secret]) {
      expect(await principalOf(each)).toMatchObject({
        accountId,
        scopes: [KeyScope.SPEECH],
        rateBucket: oldHash,
        rateLimitPerMinute: 7,
      });
    }
    expect((await principalOf(secret))?.expiresAt).toEqual(expiresAt);
    const oldKey = await shown(oldHash);
    const graceEndsMs = timestampMs(oldKey?.expiresAt ?? timestampFromMs(0));
    expect(graceEndsMs).toBeGreaterThan(startedMs + 3_500_000);
    expect(graceEndsMs).toBeLessThan(startedMs + 3_700_000);
    expect(oldKey?.updatedAt).toBeDefined();
  });

  test("shares what was spent, and the limit, with the old one", async () => {
    const old = await keys.createKey({ name: "a", limitNanoUsd: 100n, includeByokInLimit: true });
    await spend(old.secret, 30n, 5n);
    const { secret, key } = await keys.rotateKey({ hash: old.key?.hash ?? "", graceS: hourS });
    const line = { totalNanoUsd: 30n, dailyNanoUsd: 30n, weeklyNanoUsd: 30n, monthlyNanoUsd: 30n };
    expect(key).toMatchObject({ usage: line, byokUsage: { totalNanoUsd: 5n }, limitRemainingNanoUsd: 65n });
    await spend(secret, 40n);
    expect(await reserve(old.secret, 20n)).toBe("granted");
    for (const hash of [old.key?.hash ?? "", hashApiKey(secret)]) {
      expect(await shown(hash)).toMatchObject({ usage: { totalNanoUsd: 70n }, limitRemainingNanoUsd: 5n });
    }
    expect(await reserve(secret, 6n)).toBe("key_limit");
    expect(await reserve(secret, 5n)).toBe("granted");
  });

  test("is replaced in its turn, in the same line", async () => {
    const first = await keys.createKey({ name: "a" });
    let { secret } = first;
    for (let turn = 0; turn < 3; turn += 1) {
      await spend(secret, 10n);
      ({ secret } = await keys.rotateKey({ hash: hashApiKey(secret), graceS: hourS }));
    }
    expect(await principalOf(secret)).toMatchObject({ rateBucket: first.key?.hash });
    expect(await principalOf(first.secret)).toMatchObject({ rateBucket: first.key?.hash });
    expect((await shown(hashApiKey(secret)))?.usage?.totalNanoUsd).toBe(30n);
    expect((await keys.listKeys({})).totalCount).toBe(5n);
  });

  test("of an organization's key belongs to the same member", async () => {
    const admin = await server.admin();
    const { account } = await admin.createAccount({ name: "o", kind: AccountKind.ORGANIZATION });
    const organization = account?.id ?? "";
    const { member } = await admin.addMember({ accountId: organization, name: "M" });
    const memberId = member?.id ?? "";
    const own = { name: "manage", kind: KeyKind.MANAGEMENT, memberId };
    const management = await admin.createAccountKey({ accountId: organization, key: own });
    const theirs = server.client(KeyService, `Bearer ${management.secret}`);
    const { secret } = await theirs.rotateKey({ hash: hashApiKey(management.secret), graceS: 0n });
    expect(await principalOf(secret)).toMatchObject({
      memberId,
      organization: true,
      keyKind: KeyKind.MANAGEMENT,
    });
    await admin.removeMember({ accountId: organization, memberId });
    expect((await refusal(principalOf(secret))).reason).toBe(ErrorReason.KEY_DISABLED);
  });
});

describe("the old key", () => {
  test("without a grace period is refused at once, also the one that makes the call", async () => {
    const { secret } = await keys.rotateKey({ hash: hashApiKey(managementKey), graceS: 0n });
    expect((await refusal(principalOf(managementKey))).reason).toBe(ErrorReason.KEY_EXPIRED);
    expect(await principalOf(secret)).toMatchObject({ keyKind: KeyKind.MANAGEMENT });
  });

  test("is refused when the grace period ends", async () => {
    const old = await keys.createKey({ name: "a" });
    await keys.rotateKey({ hash: old.key?.hash ?? "", graceS: 1n });
    expect(await principalOf(old.secret)).toMatchObject({ accountId });
    const reason = await waitUntil(() => refusal(principalOf(old.secret)));
    expect(reason.reason).toBe(ErrorReason.KEY_EXPIRED);
  });

  test("expires no later than it would have", async () => {
    const expiresAt = timestampFromMs(Date.now() + 60_000);
    const { key } = await keys.createKey({ name: "a", expiresAt });
    await keys.rotateKey({ hash: key?.hash ?? "", graceS: hourS });
    expect((await shown(key?.hash ?? ""))?.expiresAt).toEqual(expiresAt);
  });

  test("can be made to end earlier, but not to work longer", async () => {
    const { key } = await keys.createKey({ name: "a" });
    const hash = key?.hash ?? "";
    await keys.rotateKey({ hash, graceS: hourS });
    const refused = {
      reason: ErrorReason.INVALID_BODY,
      messages: [expect.stringMatching(/^expires_at .*replaced/)],
    };
    const later = timestampFromMs(Date.now() + 2 * 3_600_000);
    expect(await refusal(keys.updateKey({ hash, expiresAt: later }))).toEqual(refused);
    expect(await refusal(keys.updateKey({ hash, clearExpiresAt: true }))).toEqual(refused);
    const sooner = timestampFromMs(Date.now() + 60_000);
    expect((await keys.updateKey({ hash, expiresAt: sooner, name: "b" })).key?.expiresAt).toEqual(sooner);
  });
});

describe("is not replaced:", () => {
  const hashOf = async (options: object = {}) =>
    (await keys.createKey({ name: "a", ...options })).key?.hash ?? "";

  test.for<[string, () => Promise<string>, RegExp]>([
    [
      "a key that was",
      async () => {
        const hash = await hashOf();
        await keys.rotateKey({ hash, graceS: hourS });
        return hash;
      },
      /^hash .*replaced before$/,
    ],
    [
      "a disabled key",
      async () => {
        const hash = await hashOf();
        await keys.updateKey({ hash, disabled: true });
        return hash;
      },
      /^hash .*disabled$/,
    ],
    [
      "an expired key",
      async () => {
        const hash = await hashOf();
        await keys.updateKey({ hash, expiresAt: timestampFromMs(Date.now() - 1000) });
        return hash;
      },
      /^hash .*expired$/,
    ],
  ])("%s", async ([, prepare, message]) => {
    const hash = await prepare();
    expect(await refusal(keys.rotateKey({ hash, graceS: 0n }))).toEqual({
      reason: ErrorReason.INVALID_BODY,
      messages: [expect.stringMatching(message)],
    });
  });

  test("a key that is deleted, unknown or another account's", async () => {
    const deleted = await hashOf();
    await keys.deleteKey({ hash: deleted });
    const admin = await server.admin();
    const { account } = await admin.createAccount({ name: "b", kind: AccountKind.PERSONAL });
    const { key } = await admin.createAccountKey({ accountId: account?.id ?? "", key: { name: "k" } });
    for (const hash of [deleted, "0".repeat(64), key?.hash ?? ""]) {
      expect((await refusal(keys.rotateKey({ hash, graceS: 0n }))).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    }
  });

  test("a key for a malformed request", async () => {
    const hash = await hashOf();
    for (const [request, path] of [
      [{ hash: "x", graceS: -1n }, "hash grace_s"],
      [{ hash, graceS: 2_592_001n }, "grace_s"],
      [{ hash, graceS: 2n ** 63n - 1n }, "grace_s"],
    ] as const) {
      const { reason, messages } = await refusal(keys.rotateKey(request));
      expect(reason).toBe(ErrorReason.INVALID_BODY);
      expect(messages.map((message) => message.split(" ")[0]).join(" ")).toBe(path);
    }
    expect((await shown(hash))?.expiresAt).toBeUndefined();
  });

  test("a key twice by calls that come at once", async () => {
    const hash = await hashOf();
    const calls = Array.from({ length: 6 }, () =>
      keys.rotateKey({ hash, graceS: hourS }).then(
        () => "replaced",
        (thrown: unknown) => DomainError.from(thrown).reason,
      ),
    );
    const outcomes = await Promise.all(calls);
    expect(outcomes.filter((outcome) => outcome === "replaced")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === ErrorReason.INVALID_BODY)).toHaveLength(5);
    const line = server.database.selectFrom("api_key").select("hash").where("rate_bucket", "=", hash);
    expect(await line.execute()).toHaveLength(2);
  });

  test("a key of an account with as many as it may have", async () => {
    const hash = await hashOf();
    const rows = Array.from({ length: maxKeysPerAccount - 2 }, (_, index) => ({
      hash: hashApiKey(`${accountId} ${index}`),
      account_id: accountId,
      kind: "inference" as const,
      scopes: [],
      name: "many",
      label: "sk-…",
      rate_bucket: "0".repeat(64),
      limit_nano_usd: null,
      limit_reset: null,
      rate_limit_per_minute: null,
      member_id: null,
    }));
    await server.database.insertInto("api_key").values(rows).execute();
    const refused = await refusal(keys.rotateKey({ hash, graceS: 0n }));
    expect(refused.reason).toBe(ErrorReason.COUNT_LIMIT_REACHED);
    expect((await shown(hash))?.expiresAt).toBeUndefined();
  });
});
