import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AccountInternalService } from "../../../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import { ProviderKeyService } from "../../../gen/media/account/v1/provider_key_service_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { createLog } from "../../../lib/runtime/log.ts";
import { readMasterKeys } from "../../../lib/secrets/master-keys.ts";
import { createSealer } from "../../../lib/secrets/seal.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
  testProviderKeys,
} from "../../../test/support/services/account-server.ts";
import { createProviderKey, maskSecret } from "./provider-keys.ts";

const newKey = `new:${Buffer.alloc(32, 2).toString("base64")}`;
const oldKey = `old:${Buffer.alloc(32, 1).toString("base64")}`;
const oldSealer = createSealer(readMasterKeys(oldKey));
const goneSealer = createSealer(readMasterKeys(`gone:${Buffer.alloc(32, 3).toString("base64")}`));
const secret = "sk-proj-0123456789abcdefghijWXYZ";
const logLines: string[] = [];
let server: TestAccountServer;
let internal: Client<typeof AccountInternalService>;
let own: Client<typeof ProviderKeyService>;
let accountId: string;
let managementKey: string;

beforeAll(async () => {
  const destination = { write: (line: string) => logLines.push(line) };
  const log = createLog({ name: "account", level: "trace", destination });
  const sealer = createSealer(readMasterKeys(`${newKey},${oldKey}`));
  server = await startTestAccountServer(log, { ...testProviderKeys, sealer });
  internal = server.client(AccountInternalService, await server.tokenOf("speech"));
});
afterAll(() => server.close());

beforeEach(async () => {
  ({ accountId, managementKey } = await newAccount());
  own = server.client(ProviderKeyService, `Bearer ${managementKey}`);
});

async function newAccount() {
  const admin = await server.admin();
  const { account } = await admin.createAccount({ name: "a", kind: 1 });
  const accountId = account?.id ?? "";
  const key = { name: "manage", kind: KeyKind.MANAGEMENT };
  return { accountId, managementKey: (await admin.createAccountKey({ accountId, key })).secret };
}

async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  return { reason: error?.reason, paths: error?.issues.map(({ path }) => path) };
}

const resolve = async (providerSlug: string, id = accountId) => {
  const { id: keyId, secret } = await internal.resolveProviderKey({ accountId: id, providerSlug });
  return { keyId, secret };
};
const none = { keyId: "", secret: "" };

describe("a provider key", () => {
  test("is shown masked, and whole to the processes that call providers alone", async () => {
    const { providerKey } = await own.createProviderKey({ providerSlug: "openai", secret, name: "ours" });
    expect(providerKey).toMatchObject({
      providerSlug: "openai",
      name: "ours",
      label: "sk-…WXYZ",
      disabled: false,
    });
    expect((await own.listProviderKeys({})).providerKeys).toEqual([providerKey]);
    expect(await resolve("openai")).toEqual({ keyId: providerKey?.id, secret });
    const image = server.client(AccountInternalService, await server.tokenOf("image"));
    expect(await image.resolveProviderKey({ accountId, providerSlug: "openai" })).toMatchObject({ secret });
    expect(await resolve("elevenlabs")).toEqual(none);
    expect(await resolve("nonsense'")).toEqual(none);
  });

  test("is one of its provider, until it is deleted", async () => {
    const { providerKey } = await own.createProviderKey({ providerSlug: "openai", secret });
    const second = { providerSlug: "openai", secret: "another" };
    expect((await refusal(own.createProviderKey(second))).reason).toBe(ErrorReason.COUNT_LIMIT_REACHED);
    expect(await resolve("openai")).toMatchObject({ secret });
    const other = await own.createProviderKey({ providerSlug: "elevenlabs", secret: "eleven" });
    const id = providerKey?.id ?? "";
    await own.deleteProviderKey({ id });
    expect(await resolve("openai")).toEqual(none);
    expect((await refusal(own.deleteProviderKey({ id }))).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    const again = await own.createProviderKey(second);
    expect(await resolve("openai")).toEqual({ keyId: again.providerKey?.id, secret: "another" });
    const { providerKeys } = await own.listProviderKeys({});
    expect(providerKeys).toEqual([other.providerKey, again.providerKey]);
  });

  test("is stored once by calls that come at once", async () => {
    const calls = Array.from({ length: 8 }, (_, index) =>
      refusal(own.createProviderKey({ providerSlug: "openai", secret: `secret-${index}` })),
    );
    const reasons = (await Promise.all(calls)).map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === undefined)).toHaveLength(1);
    expect(reasons.filter((reason) => reason === ErrorReason.COUNT_LIMIT_REACHED)).toHaveLength(7);
  });

  test("that is deleted leaves nothing to open", async () => {
    const { providerKey } = await own.createProviderKey({ providerSlug: "openai", secret });
    await own.deleteProviderKey({ id: providerKey?.id ?? "" });
    const { rows } = await sql`SELECT sealed, deleted_at IS NOT NULL AS deleted FROM provider_key
      WHERE account_id = ${accountId}`.execute(server.database);
    expect(rows).toEqual([{ sealed: null, deleted: true }]);
  });

  test("of another account does not exist", async () => {
    const other = await newAccount();
    const theirs = server.client(ProviderKeyService, `Bearer ${other.managementKey}`);
    const { providerKey } = await theirs.createProviderKey({ providerSlug: "openai", secret });
    const id = providerKey?.id ?? "";
    for (const call of [
      () => own.deleteProviderKey({ id }),
      () => own.getProviderKey({ id }),
      () => own.updateProviderKey({ id, name: "ours", secret: "ours" }),
    ]) {
      expect((await refusal(call())).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    }
    expect((await own.listProviderKeys({})).providerKeys).toEqual([]);
    expect(await resolve("openai")).toEqual(none);
    expect(await resolve("openai", other.accountId)).toMatchObject({ secret });
  });

  test("that is disabled is not used, until it is enabled", async () => {
    const { providerKey } = await own.createProviderKey({ providerSlug: "openai", secret, disabled: true });
    expect(providerKey).toMatchObject({ disabled: true, accountId });
    expect(await resolve("openai")).toEqual(none);
    const id = providerKey?.id ?? "";
    expect((await own.updateProviderKey({ id, disabled: false })).providerKey?.disabled).toBe(false);
    expect(await resolve("openai")).toMatchObject({ secret });
    await own.updateProviderKey({ id, disabled: true });
    expect(await resolve("openai")).toEqual(none);
    expect((await own.listProviderKeys({})).providerKeys).toMatchObject([{ disabled: true }]);
  });

  test("is changed: what is unset stays, and a new secret takes the old one's place", async () => {
    const { providerKey } = await own.createProviderKey({ providerSlug: "openai", secret, name: "ours" });
    const id = providerKey?.id ?? "";
    expect((await own.updateProviderKey({ id })).providerKey).toEqual(providerKey);
    const other = "sk-another-secret-of-the-account";
    const changed = await own.updateProviderKey({ id, name: "", secret: other });
    expect(changed.providerKey).toEqual({ ...providerKey, name: "", label: "sk-…ount" });
    expect((await own.getProviderKey({ id })).providerKey).toEqual(changed.providerKey);
    expect(await resolve("openai")).toEqual({ keyId: id, secret: other });
    const refused = { reason: ErrorReason.INVALID_BODY, paths: ["id", "secret", "name"] };
    const faulty = own.updateProviderKey({ id: "x", secret: "with blanks", name: "two\nlines" });
    expect(await refusal(faulty)).toEqual(refused);
    await own.deleteProviderKey({ id });
    for (const call of [
      () => own.getProviderKey({ id }),
      () => own.updateProviderKey({ id, secret: other }),
    ]) {
      expect((await refusal(call())).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    }
  });

  test("moved to another account or provider by the database's hand does not open", async () => {
    const other = await newAccount();
    await own.createProviderKey({ providerSlug: "openai", secret });
    const move = (column: "account_id" | "provider_slug", value: string) =>
      sql`UPDATE provider_key SET ${sql.ref(column)} = ${value} WHERE sealed IS NOT NULL
        AND account_id IN (${accountId}, ${other.accountId})`.execute(server.database);
    await move("provider_slug", "elevenlabs");
    expect((await refusal(resolve("elevenlabs"))).reason).toBe(ErrorReason.INTERNAL);
    await move("provider_slug", "openai");
    expect(await resolve("openai")).toMatchObject({ secret });
    await move("account_id", other.accountId);
    expect((await refusal(resolve("openai", other.accountId))).reason).toBe(ErrorReason.INTERNAL);
  });

  test("may be as long as 4,096 characters, and a short one is not shown at all", async () => {
    const long = randomBytes(2048).toString("hex");
    await own.createProviderKey({ providerSlug: "openai", secret: long });
    const { providerKey } = await own.createProviderKey({ providerSlug: "elevenlabs", secret: "!" });
    expect(providerKey?.label).toBe("…");
    expect((await resolve("openai")).secret).toBe(long);
    expect((await resolve("elevenlabs")).secret).toBe("!");
    expect([maskSecret("a".repeat(23)), maskSecret(`abc${"x".repeat(17)}wxyz`)]).toEqual(["…", "abc…wxyz"]);
  });
});

test.for<[string, object, string[]]>([
  ["no provider", { providerSlug: "" }, ["provider_slug"]],
  ["a provider nobody knows", { providerSlug: "acme" }, ["provider_slug"]],
  ["a provider in capitals", { providerSlug: "OpenAI" }, ["provider_slug"]],
  ["no secret", { secret: "" }, ["secret"]],
  ["a long secret", { secret: "a".repeat(4097) }, ["secret"]],
  ["a secret of two lines", { secret: "a\nb" }, ["secret"]],
  ["a secret with a blank", { secret: "Bearer abc" }, ["secret"]],
  ["a secret that no header takes", { secret: "schlüssel" }, ["secret"]],
  ["a long name", { name: "a".repeat(257) }, ["name"]],
  ["several faults", { providerSlug: "x", secret: "", name: "\n" }, ["provider_slug", "secret", "name"]],
])("%s is refused", async ([, wrong, paths]) => {
  const call = own.createProviderKey({ providerSlug: "openai", secret, ...wrong });
  expect(await refusal(call)).toEqual({ reason: ErrorReason.INVALID_BODY, paths });
});

test("ids that are none are refused", async () => {
  expect((await refusal(own.deleteProviderKey({ id: "x" }))).paths).toEqual(["id"]);
  const call = internal.resolveProviderKey({ accountId: "x", providerSlug: "openai" });
  expect((await refusal(call)).paths).toEqual(["account_id"]);
});

describe("after a rotation of master keys", () => {
  const reseal = async () => {
    const { resealed, current, unreadable } = await (await server.admin()).resealProviderKeys({});
    return { resealed, current, unreadable };
  };
  const keyIds = async () => {
    const rows = await server.database.selectFrom("provider_key").select("sealed").execute();
    return rows.flatMap(({ sealed }) => (sealed === null ? [] : [oldSealer.keyIdOf(sealed)])).sort();
  };

  beforeEach(async () => {
    await server.database.deleteFrom("provider_key").execute();
  });

  test("old seals open, and are sealed anew on demand, once", async () => {
    const key = { accountId, providerSlug: "openai", secret, name: "" };
    await createProviderKey(server.database, oldSealer, key);
    await own.createProviderKey({ providerSlug: "elevenlabs", secret: "eleven" });
    expect(await resolve("openai")).toMatchObject({ secret });
    expect(await keyIds()).toEqual(["new", "old"]);
    expect(await reseal()).toEqual({ resealed: 1n, current: 1n, unreadable: 0n });
    expect(await keyIds()).toEqual(["new", "new"]);
    expect(await resolve("openai")).toMatchObject({ secret });
    expect(await reseal()).toEqual({ resealed: 0n, current: 2n, unreadable: 0n });
    const { entries } = await (await server.admin()).listAuditEntries({});
    const written = entries.filter(({ action }) => action === "provider_keys.reseal");
    expect(written).toMatchObject([
      { operator: "ada", accountId: "", subject: "new", note: "1 provider keys" },
    ]);
  });

  test("what nobody can open is counted and left as it is, and the rest is done, in batches", async () => {
    const key = { accountId, secret, name: "" };
    await createProviderKey(server.database, goneSealer, { ...key, providerSlug: "openai" });
    for (let index = 0; index < 401; index += 1) {
      await createProviderKey(server.database, oldSealer, { ...key, providerSlug: `slug-${index}` });
    }
    expect(await reseal()).toEqual({ resealed: 401n, current: 0n, unreadable: 1n });
    expect(new Set(await keyIds())).toEqual(new Set(["gone", "new"]));
    expect(await resolve("slug-400")).toMatchObject({ secret });
    expect((await refusal(resolve("openai"))).reason).toBe(ErrorReason.INTERNAL);
  });

  test("nothing is sealed anew without its audit entry", async () => {
    await createProviderKey(server.database, oldSealer, {
      accountId,
      providerSlug: "openai",
      secret,
      name: "",
    });
    const { database } = server;
    await sql`ALTER TABLE audit ADD CONSTRAINT none CHECK (action <> 'provider_keys.reseal') NOT VALID`.execute(
      database,
    );
    try {
      expect((await refusal(reseal())).reason).toBe(ErrorReason.INTERNAL);
    } finally {
      await sql`ALTER TABLE audit DROP CONSTRAINT none`.execute(database);
    }
    expect(await keyIds()).toEqual(["old"]);
  });
});

describe("a secret", () => {
  const canary = "CANARY-0a1b2c3d4e5f60718293";
  const url = () => `${server.url}/${ProviderKeyService.typeName}/CreateProviderKey`;
  const post = async (body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url(), {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${managementKey}`, ...headers },
      body,
    });
    return {
      status: response.status,
      text: `${JSON.stringify([...response.headers])} ${await response.text()}`,
    };
  };

  test.for<[string, boolean, object | string, Record<string, string>?]>([
    ["that is stored", true, { providerSlug: "openai", secret: canary, name: "n" }],
    ["of no known provider", false, { providerSlug: "acme", secret: canary }],
    ["with a blank", false, { providerSlug: "openai", secret: `${canary} x` }],
    ["that is too long", false, { providerSlug: "openai", secret: canary.repeat(200) }],
    ["with a bad name", false, { providerSlug: "openai", secret: canary, name: "\n" }],
    ["in a list", false, { providerSlug: "openai", secret: [canary] }],
    ["in an object", false, { providerSlug: "openai", secret: { key: canary } }],
    ["in the wrong field", false, { providerSlug: [canary], secret: "x" }],
    ["under an unknown name", true, { providerSlug: "openai", secret: "x", [canary]: canary }],
    ["in JSON that is cut off", false, `{"providerSlug":"openai","secret":"${canary}`],
    ["in bytes that are no message", false, canary, { "content-type": "application/proto" }],
    ["from nobody", false, { providerSlug: "openai", secret: canary }, { authorization: "Bearer x" }],
  ])("%s stands in no answer, no log line and no row", async ([, isStored, body, headers]) => {
    const before = logLines.length;
    const answer = await post(typeof body === "string" ? body : JSON.stringify(body), headers);
    expect(answer.status === 200).toBe(isStored);
    const { providerKeys } = await own.listProviderKeys({});
    expect(providerKeys).toHaveLength(isStored ? 1 : 0);
    const { rows } = await sql<{ row: string }>`SELECT t::text AS row FROM provider_key AS t
      UNION ALL SELECT t::text FROM audit AS t`.execute(server.database);
    const shown = inspect([answer.text, providerKeys, rows, logLines.slice(before)], {
      depth: 9,
      maxStringLength: null,
      maxArrayLength: null,
    });
    for (const part of [canary, canary.slice(7), Buffer.from(canary).toString("hex")]) {
      expect(shown).not.toContain(part);
    }
  });

  test("that was stored already, or can't be opened, stands in no error either", async () => {
    await own.createProviderKey({ providerSlug: "openai", secret: canary });
    const again = await post(JSON.stringify({ providerSlug: "openai", secret: canary }));
    expect(again.status).toBe(409);
    await sql`UPDATE provider_key SET provider_slug = 'elevenlabs' WHERE account_id = ${accountId}`.execute(
      server.database,
    );
    const failure = await resolve("elevenlabs").catch((thrown: unknown) => String(thrown));
    const failures = logLines.filter((line) => line.includes("SealError"));
    expect(failures.length).toBeGreaterThan(0);
    expect(JSON.stringify([again.text, failure, logLines])).not.toContain(canary.slice(7));
  });
});
