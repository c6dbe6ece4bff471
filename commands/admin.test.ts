import { execFile } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyKind } from "../gen/media/account/v1/key_pb.ts";
import { hashApiKey, isApiKey } from "../lib/identity/api-key.ts";
import { readMasterKeys } from "../lib/secrets/master-keys.ts";
import { createSealer } from "../lib/secrets/seal.ts";
import { reserveCredit } from "../services/account/money/holds.ts";
import { createProviderKey } from "../services/account/provider-keys/provider-keys.ts";
import { createPayer, holdRequest } from "../test/support/services/account-money.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
  testProviderKeys,
} from "../test/support/services/account-server.ts";
import { inheritedEnvironment } from "./stack/child.ts";

const script = new URL("admin.ts", import.meta.url).pathname;
let server: TestAccountServer;

beforeAll(async () => {
  server = await startTestAccountServer();
});

afterAll(() => server.close());

function admin(command: string, environment: NodeJS.ProcessEnv = {}) {
  const env = {
    ...inheritedEnvironment(),
    ACCOUNT_URL: server.url,
    ADMIN_KEY_FILE: server.keyFiles.keyFile("operator"),
    ...environment,
  };
  const words = command.match(/"[^"]*"|\S+/g) ?? [];
  const args = words.map((word) => word.replaceAll('"', ""));
  return new Promise<{ code: unknown; out: string; error: string }>((resolve) => {
    execFile(process.execPath, [script, ...args], { env }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, out, error });
    });
  });
}

async function principalOf(key: string) {
  const gateway = server.client(AccountInternalService, await server.tokenOf("gateway"));
  return (await gateway.authenticate({ keyHash: hashApiKey(key) })).principal;
}

test("an operator makes an account and a key that works, and the audit names them", async () => {
  expect(await admin("key create")).toEqual({
    code: 1,
    out: "",
    error: "error: there is no account yet; make one with account create\n",
  });
  const account = await admin('account create --name "Night shift" --operator ada');
  const [accountId = "", kind] = account.out.split("\t");
  expect([kind, account.code]).toEqual(["personal", 0]);

  const created = await admin("key create --kind management --operator ada");
  const key = created.out.trim();
  expect(isApiKey(key)).toBe(true);
  expect(created.error).toContain(hashApiKey(key));
  expect(created.error).not.toContain(key);
  expect(await principalOf(key)).toMatchObject({ accountId, keyKind: KeyKind.MANAGEMENT });
  const audit = await admin(`audit list --account ${accountId} --limit 5`);
  const lines = audit.out.trim().split("\n");
  expect(lines.map((line) => line.split("\t").slice(2))).toEqual([
    ["ada", "key.create", accountId, hashApiKey(key)],
    ["ada", "account.create", accountId, accountId],
  ]);
});

test("an operator makes an organization, its members and their keys", async () => {
  const studio = await admin("account create --kind organization --name Studio");
  const [studioId = ""] = studio.out.split("\t");
  expect((await admin("key create")).error).toContain("name one with --account <id>");
  const member = await admin(`member add --account ${studioId} --name Eve`);
  const [memberId = ""] = member.out.split("\t");
  const theirs = await admin(
    `key create --account ${studioId} --member ${memberId} --scopes speech --name "for Eve"`,
  );
  expect(await principalOf(theirs.out.trim())).toMatchObject({ memberId, keyName: "for Eve", scopes: [1] });
  expect((await admin(`member remove --account ${studioId} --member ${memberId}`)).out).toContain("removed");
  expect((await admin(`member list --account ${studioId}`)).out).toContain(memberId);
  await expect(principalOf(theirs.out.trim())).rejects.toThrow("disabled");

  expect((await admin("account list")).out.trim().split("\n")).toHaveLength(2);
});

test("an operator gives credit, and sees balances, holds and why", async () => {
  const account = await admin("account create --name Studio --operator ada");
  const [accountId = ""] = account.out.split("\t");
  const grant = `credit grant ${accountId} 12.50 --id welcome --note "For a start" --operator ada`;
  expect(await admin(grant)).toEqual({
    code: 0,
    out: "balance\t12.5 USD\n",
    error: `granted 12.5 USD; grant welcome of account ${accountId}\n`,
  });
  const again = await admin(grant);
  expect(again).toMatchObject({ code: 0, out: "balance\t12.5 USD\n" });
  expect(again.error).toContain("nothing was granted");
  await admin(`credit grant --account ${accountId} 0.000000001`);
  const shown = await admin(`account show ${accountId}`);
  expect(shown.out.split("\n").map((line) => line.split("\t"))).toEqual([
    ["id", accountId],
    ["kind", "personal"],
    ["name", "Studio"],
    ["created", expect.any(String)],
    ["granted", "12.500000001 USD"],
    ["charged", "0 USD"],
    ["balance", "12.500000001 USD"],
    ["held", "0 USD"],
    ["free", "12.500000001 USD"],
    [""],
  ]);
  const listed = (await admin("account list")).out.split("\n").find((line) => line.startsWith(accountId));
  expect(listed?.split("\t").slice(3)).toEqual(["12.500000001 USD", "Studio"]);
  const audit = await admin(`audit list --account ${accountId} --limit 2`);
  const lines = audit.out.trim().split("\n");
  expect(lines).toHaveLength(2);
  expect(lines[1]?.split("\t").slice(2)).toEqual([
    "ada",
    "credit.grant",
    accountId,
    "welcome",
    "12.5 USD: For a start",
  ]);
});

test("an operator sees holds, the first of a span", async () => {
  const payer = await createPayer(server.database, { credit: 10n });
  const deadline = new Date("2031-05-05T12:00:00Z");
  const [first, second] = [holdRequest(payer, 4n, { deadline }), holdRequest(payer, 7n, { deadline })];
  await reserveCredit(server.database, [first, second], 1000);
  const span = "holds list --from 2031-05-05 --to 2031-05-06";
  const { out, code } = await admin(span);
  expect(code).toBe(0);
  const states = new Map([
    [first.generationId, "open"],
    [second.generationId, "refused"],
  ]);
  const ids = [...states.keys()].sort();
  expect(out.trim().split("\n")).toEqual(
    ids.map((id) => [id, states.get(id), payer.accountId, "0 USD", "0 USD", "no event"].join("\t")),
  );
  const limited = await admin(`${span} --limit 1`);
  expect(limited.out.trim().split("\n")).toHaveLength(1);
  expect(limited.error).toBe("the first 1 of 2\n");
  expect((await admin("holds list")).out).toBe("");
});

test("an operator seals provider keys again", async () => {
  const { accountId } = await createPayer(server.database);
  const old = createSealer(readMasterKeys(`old:${Buffer.alloc(32, 1).toString("base64")}`));
  const key = { accountId, secret: "s", name: "" };
  await createProviderKey(server.database, testProviderKeys.sealer, { ...key, providerSlug: "openai" });
  await createProviderKey(server.database, old, { ...key, providerSlug: "elevenlabs" });
  expect(await admin("provider-keys reseal")).toEqual({
    code: 0,
    out: "sealed again\t0\nsealed with the first key before\t1\ncan't be read\t1\n",
    error: "those that can't be read need a master key that is gone\n",
  });
});

test("without a command it shows what there is", async () => {
  const { code, out } = await admin("");
  expect(code).toBe(0);
  for (const name of [
    "account create",
    "account show [<account>]",
    "key create",
    "member remove",
    "credit grant [<account>] <usd>",
    "holds list",
    "provider-keys reseal",
    "audit list",
  ]) {
    expect(out).toContain(name);
  }
});

test.for<[string, NodeJS.ProcessEnv, RegExp]>([
  ["key destroy", {}, /no command "key destroy"/],
  ["key", {}, /no command "key"/],
  ["key create --colour red", {}, /--colour/],
  ["key create --kind master", {}, /--kind takes inference, management, not master/],
  ["key create --account x", {}, /account_id must be a UUID/],
  ["audit list --limit ten", {}, /--limit must be/],
  ["audit list now", {}, /now/],
  ["credit grant", {}, /how much\?/],
  ["credit grant x ten", {}, /US dollars such as 10 or 2.50, not ten/],
  ["credit grant x 1 2", {}, /"2" is too much/],
  ["credit grant x 1", {}, /account_id must be a UUID/],
  ["holds list --from yesterday", {}, /--from must be an instant/],
  ["account list", { ACCOUNT_URL: "http://127.0.0.1:1" }, /at http:\/\/127.0.0.1:1 does not answer/],
  ["account list", { ACCOUNT_URL: "nowhere" }, /ACCOUNT_URL must be/],
  [
    "account list",
    { ADMIN_KEY_FILE: "absent.jwk" },
    /absent.jwk can't be read \(ENOENT\); set ADMIN_KEY_FILE/,
  ],
  ["account list", { ADMIN_KEY_FILE: "", DATA_DIR: "absent" }, /absent\/keys\/admin.jwk can't be read/],
])("%s with %o fails with one clear line", async ([command, environment, message]) => {
  const { code, out, error } = await admin(command, environment);
  expect(code).toBe(1);
  expect(out).toBe("");
  expect(error).toMatch(message);
  expect(error).toMatch(/^error: [^\n]+\n$/);
});

test("a key that is not the operator's opens nothing", async () => {
  const { error } = await admin("account list", { ADMIN_KEY_FILE: server.keyFiles.keyFile("gateway") });
  expect(error).toContain("holds the key of gateway, not of operator");
});
