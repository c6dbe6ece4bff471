import { execFile } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyKind } from "../gen/media/account/v1/key_pb.ts";
import { hashApiKey, isApiKey } from "../lib/identity/api-key.ts";
import { startTestAccountServer, type TestAccountServer } from "../test/support/account-server.ts";

const script = new URL("admin.ts", import.meta.url).pathname;
let server: TestAccountServer;

beforeAll(async () => {
  server = await startTestAccountServer();
});

afterAll(() => server.close());

function admin(command: string, environment: NodeJS.ProcessEnv = {}) {
  const env = {
    PATH: process.env.PATH,
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

test("an operator makes an account and keys that work, and the audit names them", async () => {
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
  const audit = await admin(`audit list --account ${accountId} --limit 5`);
  const lines = audit.out.trim().split("\n");
  expect(lines.map((line) => line.split("\t").slice(2))).toEqual([
    ["ada", "key.create", accountId, hashApiKey(key)],
    ["ada", "account.create", accountId, accountId],
  ]);
});

test("without a command it shows what there is", async () => {
  const { code, out } = await admin("");
  expect(code).toBe(0);
  for (const name of ["account create", "key create", "member remove", "audit list"])
    expect(out).toContain(name);
});

test.for<[string, NodeJS.ProcessEnv, RegExp]>([
  ["key destroy", {}, /no command "key destroy"/],
  ["key", {}, /no command "key"/],
  ["key create --colour red", {}, /--colour/],
  ["key create --kind master", {}, /--kind takes inference, management, not master/],
  ["key create --account x", {}, /account_id must be a UUID/],
  ["audit list --limit ten", {}, /--limit must be/],
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
