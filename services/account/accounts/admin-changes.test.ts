import { create, type DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { PrincipalSchema } from "../../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { LedgerEntryType } from "../../../gen/media/account/v1/credit_pb.ts";
import { CreditService } from "../../../gen/media/account/v1/credit_service_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../../gen/media/account/v1/key_service_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";
import { readServiceKey } from "../../../lib/identity/service-key.ts";
import { createTokenSigner } from "../../../lib/identity/service-token.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { faultsOfBooks, holdRequest } from "../../../test/support/services/account-money.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../../test/support/services/account-server.ts";
import { listBooks } from "../money/books.ts";
import { reserveCredit } from "../money/holds.ts";

const nobody = "00000000-0000-4000-8000-000000000000";
let server: TestAccountServer;
let admin: Client<typeof AccountAdminService>;
let accountId: string;
let moveId: string;

beforeAll(async () => {
  server = await startTestAccountServer();
  admin = await server.admin();
});

afterAll(() => server.close());

beforeEach(async () => {
  const { account } = await admin.createAccount({ name: "a", kind: 1 });
  accountId = account?.id ?? "";
  moveId = `move-${accountId}`;
});

async function refusal(call: Promise<unknown>): Promise<DomainError | undefined> {
  return call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
}

/** All at once, so that none is refused before anybody looks. */
async function expectRefused(reason: ErrorReason, calls: readonly Promise<unknown>[]): Promise<void> {
  const errors = await Promise.all(calls.map(refusal));
  expect(errors.map((error) => error?.reason)).toEqual(calls.map(() => reason));
}

async function audit(): Promise<string[]> {
  const { entries } = await admin.listAuditEntries({ accountId });
  return entries.map(({ operator, action, note }) => `${operator} ${action} ${note}`.trim()).reverse();
}

async function keyOf(kind: KeyKind): Promise<string> {
  return (await admin.createAccountKey({ accountId, key: { name: "k", kind } })).secret;
}

async function authenticate(secret: string) {
  const gateway = server.client(AccountInternalService, await server.tokenOf("gateway"));
  return gateway.authenticate({ keyHash: hashApiKey(secret) });
}

/** A client of an operator who looks at an account, by a token as `media-gateway` sends it. */
async function looking<S extends DescService>(service: S, principalOf = accountId): Promise<Client<S>> {
  const signer = createTokenSigner(
    await readServiceKey(server.keyFiles.keyFile("operator"), "operator"),
    "ada",
  );
  const principal = create(PrincipalSchema, { accountId: principalOf, keyKind: KeyKind.MANAGEMENT });
  return server.client(service, `Bearer ${await signer.sign("account", principal)}`);
}

describe("an account", () => {
  test("that is disabled has no key that works until it is enabled, and the audit says who did it", async () => {
    const secret = await keyOf(KeyKind.INFERENCE);
    const { account } = await admin.updateAccount({ accountId, disabled: true });
    expect(account?.disabledAt).toBeDefined();
    expect((await refusal(authenticate(secret)))?.reason).toBe(ErrorReason.KEY_DISABLED);
    expect((await admin.updateAccount({ accountId, disabled: true })).account).toEqual(account);
    expect((await admin.updateAccount({ accountId, disabled: false })).account?.disabledAt).toBeUndefined();
    expect((await authenticate(secret)).principal).toMatchObject({ accountId });
    expect(await audit()).toEqual([
      "ada account.create",
      "ada key.create",
      "ada account.disable",
      "ada account.enable",
    ]);
  });

  test("gets another name, once", async () => {
    for (const _ of [1, 2]) {
      expect((await admin.updateAccount({ accountId, name: "b" })).account).toMatchObject({ name: "b" });
    }
    expect(await audit()).toEqual(["ada account.create", "ada account.rename"]);
    expect((await refusal(admin.updateAccount({ accountId, name: "" })))?.reason).toBe(
      ErrorReason.INVALID_BODY,
    );
    expect((await refusal(admin.updateAccount({ accountId: nobody, name: "b" })))?.reason).toBe(
      ErrorReason.RECORD_UNKNOWN,
    );
  });
});

describe("a key", () => {
  test("that is the account's last management key is disabled by an operator, not by itself", async () => {
    const secret = await keyOf(KeyKind.MANAGEMENT);
    const hash = hashApiKey(secret);
    const own = server.client(KeyService, `Bearer ${secret}`).updateKey({ hash, disabled: true });
    expect((await refusal(own))?.reason).toBe(ErrorReason.LAST_MANAGEMENT_KEY);
    const { key } = await admin.updateAccountKey({ accountId, key: { hash, disabled: true } });
    expect(key).toMatchObject({ hash, disabled: true });
    expect((await refusal(authenticate(secret)))?.reason).toBe(ErrorReason.KEY_DISABLED);
    await admin.updateAccountKey({ accountId, key: { hash, name: "n" } });
    await admin.updateAccountKey({ accountId, key: { hash, disabled: false } });
    expect((await audit()).slice(2)).toEqual(["ada key.disable", "ada key.update", "ada key.enable"]);
  });

  test("is rotated, and its successor works", async () => {
    const hash = hashApiKey(await keyOf(KeyKind.INFERENCE));
    const { secret, key } = await admin.rotateAccountKey({ accountId, key: { hash } });
    expect((await authenticate(secret)).principal).toMatchObject({ accountId, keyHash: key?.hash });
    expect((await audit()).at(-1)).toBe(`ada key.rotate its successor is ${key?.hash}`);
    const again = await refusal(admin.rotateAccountKey({ accountId, key: { hash } }));
    expect(again?.reason).toBe(ErrorReason.INVALID_BODY);
  });

  test("of another account does not exist", async () => {
    const hash = hashApiKey(await keyOf(KeyKind.INFERENCE));
    const { account } = await admin.createAccount({ name: "b", kind: 1 });
    const other = account?.id ?? "";
    await expectRefused(ErrorReason.RECORD_UNKNOWN, [
      admin.updateAccountKey({ accountId: other, key: { hash, disabled: true } }),
      admin.rotateAccountKey({ accountId: other, key: { hash } }),
    ]);
  });
});

describe("a correction", () => {
  const correct = (amountNanoUsd: bigint, correctionId = moveId, reason = "a slip") =>
    admin.correctCredit({ accountId, amountNanoUsd, correctionId, reason });

  beforeEach(() => admin.grantCredit({ accountId, amountNanoUsd: 100n, grantId: `grant-${accountId}` }));

  test("takes granted credit back once for its id, in the ledger, and the books agree", async () => {
    expect(await correct(40n)).toMatchObject({ balanceNanoUsd: 60n, applied: true });
    expect(await correct(40n)).toMatchObject({ balanceNanoUsd: 60n, applied: false });
    const { entries } = await (await looking(CreditService)).listLedgerEntries({});
    expect(entries).toMatchObject([
      { type: LedgerEntryType.CORRECTION, amountNanoUsd: 40n, grantId: moveId, generationId: "" },
      { type: LedgerEntryType.GRANT, amountNanoUsd: 100n },
    ]);
    const { account } = await admin.getAccount({ accountId });
    expect(account).toMatchObject({ grantedNanoUsd: 60n, chargedNanoUsd: 0n, balanceNanoUsd: 60n });
    const [[books] = []] = await Array.fromAsync(
      listBooks(server.database, accountId, AbortSignal.timeout(60_000)),
    );
    expect(books).toMatchObject({ grantedNanoUsd: 60n, ledgerGrantedNanoUsd: 60n });
    expect(await faultsOfBooks(server.database)).toEqual([]);
    expect((await audit()).at(-1)).toBe("ada credit.correct -0.00000004 USD: a slip");
  });

  test("of more than is neither spent nor on hold is refused and leaves nothing", async () => {
    const keyHash = hashApiKey(await keyOf(KeyKind.INFERENCE));
    const hold = holdRequest({ accountId, keyHash }, 30n);
    expect(await reserveCredit(server.database, [hold], 1000)).toEqual(["granted"]);
    const error = await refusal(correct(71n));
    expect(error).toMatchObject({ reason: ErrorReason.CREDITS_EXHAUSTED });
    expect(error?.message).toContain("0.00000007 USD free");
    expect(await correct(70n)).toMatchObject({ balanceNanoUsd: 30n, applied: true });
    expect(await faultsOfBooks(server.database)).toEqual([]);
  });

  test("of two at once that together are too much one is refused", async () => {
    const both = await Promise.allSettled([correct(60n, `${moveId}-1`), correct(60n, `${moveId}-2`)]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect((await admin.getAccount({ accountId })).account?.balanceNanoUsd).toBe(40n);
  });

  test("has an id that stands for nothing else, and a reason", async () => {
    await correct(10n);
    const { INVALID_BODY } = ErrorReason;
    await expectRefused(INVALID_BODY, [
      correct(11n),
      admin.grantCredit({ accountId, amountNanoUsd: 10n, grantId: moveId }),
      correct(100n, `grant-${accountId}`),
      correct(1n, "other", ""),
      correct(0n, "other"),
      correct(-1n, "other"),
      correct(1n, ""),
    ]);
  });
});

describe("an operator who looks at an account", () => {
  test("sees what it sees and changes nothing", async () => {
    const hash = hashApiKey(await keyOf(KeyKind.INFERENCE));
    const keys = await looking(KeyService);
    expect((await keys.listKeys({})).keys.map((key) => key.hash)).toEqual([hash]);
    await expectRefused(ErrorReason.CALLER_NOT_ALLOWED, [
      keys.updateKey({ hash, disabled: true }),
      keys.createKey({ name: "mine" }),
      keys.rotateKey({ hash }),
      keys.deleteKey({ hash }),
    ]);
    const other = await looking(KeyService, nobody);
    expect((await other.listKeys({})).keys).toEqual([]);
  });
});

test("what a destination process records stands in the audit", async () => {
  const destination = server.client(AccountInternalService, await server.tokenOf("destination"));
  const action = { operator: "eve", action: "pause", accountId, destinationId: nobody };
  await destination.recordDestinationAction(action);
  expect((await audit()).at(-1)).toBe("eve destination.pause");
  for (const wrong of [{ action: "delete" }, { operator: "" }, { destinationId: "x" }, { accountId: "x" }]) {
    const error = await refusal(destination.recordDestinationAction({ ...action, ...wrong }));
    expect(error?.reason).toBe(ErrorReason.INVALID_BODY);
  }
  const unknown = await refusal(destination.recordDestinationAction({ ...action, accountId: nobody }));
  expect(unknown?.reason).toBe(ErrorReason.RECORD_UNKNOWN);
});
