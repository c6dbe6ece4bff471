import { afterAll, beforeAll, expect, test } from "vitest";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyKind } from "../gen/media/account/v1/key_pb.ts";
import { hashApiKey, isApiKey } from "../lib/identity/api-key.ts";
import { readMasterKeys } from "../lib/secrets/master-keys.ts";
import { createSealer } from "../lib/secrets/seal.ts";
import { reserveCredit } from "../services/account/money/holds.ts";
import { createProviderKey } from "../services/account/provider-keys/provider-keys.ts";
import { commandLine } from "../test/support/processes/command-line.ts";
import { createPayer, holdRequest } from "../test/support/services/account-money.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
  testProviderKeys,
} from "../test/support/services/account-server.ts";

let server: TestAccountServer;

beforeAll(async () => {
  server = await startTestAccountServer();
});

afterAll(() => server.close());

function admin(command: string, environment: NodeJS.ProcessEnv = {}) {
  const env = {
    ACCOUNT_URL: server.url,
    ADMIN_KEY_FILE: server.keyFiles.keyFile("operator"),
    ...environment,
  };
  const words = command.match(/"[^"]*"|\S+/g) ?? [];
  const script = "commands/admin.ts";
  return commandLine(
    words.map((word) => word.replaceAll('"', "")),
    { env, script },
  );
}

/** What a command says, as programs read it. */
async function told(command: string) {
  const { code, out, error } = await admin(`${command} --json`);
  expect({ command, code }, error).toEqual({ command, code: 0 });
  return JSON.parse(out);
}

async function principalOf(key: string) {
  const gateway = server.client(AccountInternalService, await server.tokenOf("gateway"));
  return (await gateway.authenticate({ keyHash: hashApiKey(key) })).principal;
}

test("an operator makes an account and a key that works, and the audit names them", async () => {
  expect(await admin("key create")).toEqual({
    code: 3,
    out: "",
    error: "error: there is no account yet; make one with account create\n",
  });
  const { id: accountId, kind } = await told('account create --name "Night shift" --operator ada');
  expect(kind).toBe("personal");

  const created = await admin("key create --kind management --operator ada");
  const key = created.out.trim();
  expect(isApiKey(key)).toBe(true);
  expect(created.error).toContain(hashApiKey(key));
  expect(created.error).not.toContain(key);
  expect(await principalOf(key)).toMatchObject({ accountId, keyKind: KeyKind.MANAGEMENT });
  const audit = { operator: "ada", account: accountId };
  expect(await told(`audit list --account ${accountId} --limit 5`)).toMatchObject([
    { ...audit, action: "key.create", subject: hashApiKey(key) },
    { ...audit, action: "account.create", subject: accountId },
  ]);
});

test("an operator makes an organization, its members and their keys", async () => {
  const { id: studioId } = await told("account create --kind organization --name Studio");
  const unnamed = await admin("key create");
  expect(unnamed).toMatchObject({ code: 2, error: expect.stringContaining("name one with --account <id>") });
  const { id: memberId } = await told(`member add --account ${studioId} --name Eve`);
  const theirs = await admin(
    `key create --account ${studioId} --member ${memberId} --scopes speech --name "for Eve"`,
  );
  expect(await principalOf(theirs.out.trim())).toMatchObject({ memberId, keyName: "for Eve", scopes: [1] });
  expect((await admin(`member remove --account ${studioId} --member ${memberId}`)).out).toContain("removed");
  expect((await admin(`member list --account ${studioId}`)).out).toContain(memberId);
  await expect(principalOf(theirs.out.trim())).rejects.toThrow("disabled");

  expect(await told("account list")).toHaveLength(2);
});

test("an operator gives credit, and sees balances, holds and why", async () => {
  const { id: accountId } = await told("account create --name Studio --operator ada");
  const grant = `credit grant ${accountId} 12.50 --id welcome --note "For a start" --operator ada`;
  expect(await admin(grant)).toEqual({
    code: 0,
    out: "balance  $12.50\n",
    error: `granted $12.50; grant welcome of account ${accountId}\n`,
  });
  const again = await admin(grant);
  expect(again).toMatchObject({ code: 0, out: "balance  $12.50\n" });
  expect(again.error).toContain("nothing was granted");
  await admin(`credit grant --account ${accountId} 0.000000001`);
  expect(await told(`account show ${accountId}`)).toEqual({
    id: accountId,
    kind: "personal",
    name: "Studio",
    state: "works",
    created_at: expect.any(String),
    granted_usd: "12.500000001",
    charged_usd: "0",
    balance_usd: "12.500000001",
    held_usd: "0",
    free_usd: "12.500000001",
  });
  const listed = (await told("account list")).find(({ id }: { id: string }) => id === accountId);
  expect(listed).toMatchObject({ balance_usd: "12.500000001", name: "Studio" });
  const audit = await told(`audit list --account ${accountId} --limit 2`);
  expect(audit).toHaveLength(2);
  expect(audit[1]).toMatchObject({
    operator: "ada",
    action: "credit.grant",
    account: accountId,
    subject: "welcome",
    note: "12.5 USD: For a start",
  });
});

test("an operator sees holds, the first of a span", async () => {
  const payer = await createPayer(server.database, { credit: 10n });
  const deadline = new Date("2031-05-05T12:00:00Z");
  const [first, second] = [holdRequest(payer, 4n, { deadline }), holdRequest(payer, 7n, { deadline })];
  await reserveCredit(server.database, [first, second], 1000);
  const span = "holds list --from 2031-05-05 --to 2031-05-06";
  const states = new Map([
    [first.generationId, { state: "open", held_usd: "0.000000004" }],
    [second.generationId, { state: "refused", held_usd: "0.000000007" }],
  ]);
  const nothing = { account: payer.accountId, cost_usd: "0", charged_usd: "0", event: "none" };
  expect(await told(span)).toMatchObject(
    [...states.keys()].sort().map((id) => ({ id, ...states.get(id), ...nothing })),
  );
  expect(await told(`${span} --state refused`)).toMatchObject([{ id: second.generationId }]);
  const limited = await admin(`${span} --limit 1`);
  expect(limited.out.trim().split("\n")).toHaveLength(2);
  expect(limited.error).toBe("the first 1 of 2\n");
  expect(await told("holds list")).toEqual([]);
});

test("an operator seals provider keys again", async () => {
  const { accountId } = await createPayer(server.database);
  const old = createSealer(readMasterKeys(`old:${Buffer.alloc(32, 1).toString("base64")}`));
  const key = { accountId, secret: "s", name: "" };
  await createProviderKey(server.database, testProviderKeys.sealer, { ...key, providerSlug: "openai" });
  await createProviderKey(server.database, old, { ...key, providerSlug: "elevenlabs" });
  expect(await admin("provider-keys reseal")).toEqual({
    code: 0,
    out: "sealed again                      0\nsealed with the first key before  1\nunreadable                        1\n",
    error: "those that can't be read need a master key that is gone\n",
  });
});

test.for<[string, NodeJS.ProcessEnv, number, RegExp]>([
  ["key create --account x", {}, 3, /account must be a UUID/],
  ["audit list now", {}, 2, /too many arguments/],
  ["credit grant x 1", {}, 3, /account must be a UUID/],
  ["account show 00000000-0000-4000-8000-000000000000", {}, 4, /no such record/],
  ["account list", { ACCOUNT_URL: "http://127.0.0.1:1" }, 5, /at http:\/\/127.0.0.1:1 does not answer/],
  ["account list", { ACCOUNT_URL: "nowhere" }, 2, /ACCOUNT_URL must be/],
  [
    "account list",
    { ADMIN_KEY_FILE: "absent.jwk" },
    6,
    /absent.jwk can't be read \(ENOENT\); set ADMIN_KEY_FILE/,
  ],
  ["account list", { ADMIN_KEY_FILE: "", DATA_DIR: "absent" }, 6, /absent\/keys\/admin.jwk can't be read/],
])("%s with %o exits with %i and one clear line", async ([command, environment, exit, message]) => {
  const { code, out, error } = await admin(command, environment);
  expect({ code, out }).toEqual({ code: exit, out: "" });
  expect(error).toMatch(message);
  expect(error).toMatch(/^error: [^\n]+\n$/);
});

test("a key that is not the operator's, or of another system, opens nothing", async () => {
  const gateways = await admin("account list", { ADMIN_KEY_FILE: server.keyFiles.keyFile("gateway") });
  expect(gateways).toMatchObject({ code: 6, error: expect.stringContaining("of gateway, not of operator") });
  const other = await startTestAccountServer();
  try {
    const theirs = await admin("account list", { ADMIN_KEY_FILE: other.keyFiles.keyFile("operator") });
    expect(theirs).toMatchObject({ code: 6, out: "" });
    expect(theirs.error).toContain("does not accept this admin key");
  } finally {
    await other.close();
  }
});
