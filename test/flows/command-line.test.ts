import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nouns } from "../../commands/cli/nouns.ts";
import { hashApiKey, isApiKey } from "../../lib/identity/api-key.ts";
import { commandHere } from "../support/processes/command-line.ts";
import {
  bytesOf,
  openAiEnv,
  speak,
  startTestStandalone,
  type TestStandalone,
} from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

let upstream: OpenAiUpstream;
let dataDir: string;
let stack: TestStandalone;
let accountId: string;
let destinationId: string;
let generationId: string;
/** Every verb that was tried, both ways. */
const tried = new Set<string>();

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  dataDir = await mkdtemp(join(tmpdir(), "command-line-"));
  const env = { ...openAiEnv(upstream), DATA_DIR: dataDir, DESTINATION_ALLOWED_CIDRS: "127.0.0.0/8" };
  stack = await startTestStandalone(env);
  const answer = await speak(stack, stack.inferenceKey, {
    model: "openai/tts-1",
    voice: "alloy",
    input: "Hello.",
  });
  generationId = answer.headers.get("x-generation-id") ?? "";
  await bytesOf(answer);
  destinationId = (
    await post("/observability/destinations", {
      type: "webhook",
      name: "Hook",
      config: { url: `http://127.0.0.1:${stack.restPort}/nowhere` },
    })
  ).data.id;
  await post("/byok", { provider: "openai", key: "a-secret-of-theirs", name: "theirs" });
  accountId = JSON.parse((await run("account", "list", "--json")).out)[0].id;
  await waitUntil(async () => (await run("request", "list", "--json")).out.includes(generationId));
});

afterAll(async () => {
  await stack.close();
  await upstream.close();
  await rm(dataDir, { recursive: true, force: true });
});

async function post(path: string, body: object) {
  const response = await fetch(`${stack.baseUrl}/api/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.managementKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect(response.status, text).toBe(201);
  return JSON.parse(text);
}

function run(...words: readonly string[]) {
  const env = {
    DATA_DIR: dataDir,
    RPC_PORT: String(stack.rpcPort),
    PORT: String(stack.restPort),
  };
  return commandHere([...words, "--operator", "ada"], { env });
}

/** What a verb prints, as people and as programs read it. Both must be what it has to say, and hold no secret. */
async function both(...words: readonly string[]) {
  const [noun = "", verb = ""] = words;
  tried.add(`${noun} ${verb}`.trim());
  const table = await run(...words);
  const json = await run(...words, "--json");
  for (const { code, out, error } of [table, json]) {
    expect({ words, code, error: code === 0 ? "" : error }).toEqual({ words, code: 0, error: "" });
    for (const secret of [stack.inferenceKey, stack.managementKey, "a-secret-of-theirs", "test-key"]) {
      expect(out + error).not.toContain(secret);
    }
    expect(out).not.toMatch(/nano|_pb|NanoUsd/);
  }
  return { table: table.out, error: table.error, json: JSON.parse(json.out) };
}

const headOf = (table: string) => table.split("\n")[0]?.split(/ {2,}/);

test("accounts are made, listed, shown, renamed, disabled and enabled", async () => {
  const { table, json } = await both("account", "create", "--name", "Night shift");
  expect(json).toMatchObject({ name: "Night shift", kind: "personal", balance_usd: "0", state: "works" });
  expect(table).toMatch(/^name {2,}Night shift$/m);
  const list = await both("account", "list");
  expect(headOf(list.table)).toEqual(["ID", "KIND", "NAME", "CREATED AT", "BALANCE", "HELD", "STATE"]);
  expect(list.json).toHaveLength(3);
  await both("account", "rename", json.id, "Day shift");
  expect((await both("account", "show", json.id)).json).toMatchObject({ id: json.id, name: "Day shift" });
  expect((await both("account", "disable", json.id)).json.state).toMatch(/^disabled since /);
  expect((await both("account", "enable", json.id)).json.state).toBe("works");
});

test("members are added, listed and removed", async () => {
  const made = await run("account", "create", "--name", "Studio", "--kind", "organization", "--json");
  const { id } = JSON.parse(made.out);
  const { json } = await both("member", "add", "--account", id, "--name", "Eve");
  expect((await both("member", "list", "--account", id)).json).toHaveLength(2);
  const removed = await both("member", "remove", "--account", id, "--member", json.id);
  expect(removed.json.removed_at).toEqual(expect.any(String));
});

describe("keys", () => {
  const make = async () => {
    const made = await run("key", "create", "--account", accountId, "--limit", "2.50", "--reset", "monthly");
    return { made, secret: made.out.trim() };
  };

  test("are shown once, alone on stdout, and never again", async () => {
    const { made, secret } = await make();
    expect(isApiKey(secret)).toBe(true);
    expect(made.error).not.toContain(secret);
    const asJson = JSON.parse((await run("key", "create", "--account", accountId, "--json")).out);
    expect(isApiKey(asJson.secret)).toBe(true);
    expect(asJson.hash).toBe(hashApiKey(asJson.secret));
    tried.add("key create");
    const { table, json } = await both("key", "list", "--account", accountId);
    expect(headOf(table)).toEqual([
      "HASH",
      "NAME",
      "KIND",
      "STATE",
      "LIMIT",
      "REMAINING",
      "SPENT",
      "LAST USED AT",
    ]);
    expect(table).not.toContain(secret);
    expect(json).toContainEqual(expect.objectContaining({ hash: hashApiKey(secret), limit_usd: "2.5" }));
  });

  test("are named by the beginning of a hash, or by themselves on stdin, never on the command line", async () => {
    const { secret } = await make();
    const hash = hashApiKey(secret);
    const { json } = await both("key", "show", hash.slice(0, 12), "--account", accountId);
    expect(json).toMatchObject({ hash, limit_starts_anew: "monthly" });
    const env = { DATA_DIR: dataDir, RPC_PORT: String(stack.rpcPort) };
    const words = ["key", "show", "-", "--json", "--account", accountId];
    expect(JSON.parse((await commandHere(words, { env, stdin: `${secret}\n` })).out)).toMatchObject({ hash });
    const refused = await run("key", "disable", secret, "--account", accountId);
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.error).not.toContain(secret);
  });

  test("are disabled, enabled and rotated", async () => {
    const { secret } = await make();
    const hash = hashApiKey(secret);
    expect((await both("key", "disable", hash, "--account", accountId)).json.state).toBe("disabled");
    expect((await both("key", "enable", hash, "--account", accountId)).json.state).toBe("works");
    const rotated = await run("key", "rotate", hash, "--grace", "60", "--account", accountId);
    expect(isApiKey(rotated.out.trim())).toBe(true);
    expect(rotated.error).toContain(`succeeds ${hash}, which works for 60 s more`);
    tried.add("key rotate");
    const again = await run("key", "rotate", hash, "--account", accountId);
    expect(again).toMatchObject({ code: 3, out: "" });
    expect(again.error).toContain("replaced before");
  });
});

test("a link to the console is shown, alone on stdout", async () => {
  const { code, out, error } = await run(
    "console-link",
    "create",
    "--account",
    accountId,
    "--url",
    "http://a.test/",
  );
  expect({ code, out }).toEqual({
    code: 0,
    out: expect.stringMatching(/^http:\/\/a\.test\/#\/link\/\S+\n$/),
  });
  expect(error).toMatch(/^signs a browser in to account \S+, once, until \S+Z\n$/);
  tried.add("console-link create");
});

test("credit is given, taken back and told, exactly and once for an id", async () => {
  const granted = await both("credit", "grant", accountId, "12.000000001", "--id", "welcome");
  expect(granted.json).toEqual({ balance_usd: expect.stringMatching(/^\d+\.\d+$/) });
  expect(granted.error).toContain("granted $12.000000001");
  const correction = ["credit", "correct", accountId, "-2.50", "--reason", "a slip", "--id", "slip"];
  const corrected = await both(...correction);
  expect(corrected.error).toContain("took $2.50 back");
  const { table, json } = await both("credit", "ledger", "--account", accountId);
  const moves = json.filter(({ what }: { what: string }) => what !== "charge").slice(0, 2);
  expect(moves).toMatchObject([
    { what: "correction", amount_usd: "-2.5", id: "slip" },
    { what: "grant", amount_usd: "12.000000001", id: "welcome" },
  ]);
  expect(table).toMatch(/correction +-\$2\.50 +slip/);
  const much = await run("credit", "correct", accountId, "-100000", "--reason", "a slip");
  expect(much).toMatchObject({ code: 3, error: expect.stringMatching(/USD free/) });
  const audit = await both("audit", "list", "--account", accountId, "--limit", "3");
  expect(audit.json.map(({ action }: { action: string }) => action)).toContain("credit.correct");
});

test("usage and requests are told in words", async () => {
  const { table, json } = await both("request", "list", "--account", accountId, "--outcome", "succeeded");
  expect(headOf(table)?.slice(0, 5)).toEqual(["ID", "ENDED AT", "MODEL", "PROVIDER", "OUTCOME"]);
  expect(json).toMatchObject([
    { id: generationId, model: "openai/tts-1", outcome: "succeeded", charged_usd: "0.00009" },
  ]);
  const shown = await both("request", "show", generationId, "--account", accountId);
  expect(shown.json).toMatchObject({ id: generationId, account: accountId, input_characters: 6 });
  await waitUntil(async () =>
    (await run("usage", "list", "--account", accountId)).out.includes("openai/tts-1"),
  );
  expect((await both("usage", "list", "--account", accountId)).json).toMatchObject([
    { requests: 1, charged_usd: "0.00009" },
  ]);
  const series = await both("usage", "series", "--account", accountId, "--by", "model");
  expect(series.json).toMatchObject([{ model: "openai/tts-1", requests: 1, errors: 0 }]);
  const holds = await both("hold", "list", "--account", accountId);
  expect(headOf(holds.table)).toEqual([
    "ID",
    "STATE",
    "ACCOUNT",
    "HELD",
    "COST",
    "CHARGED",
    "EVENT",
    "DEADLINE",
  ]);
  expect(holds.json).toMatchObject([{ id: generationId, state: "settled", charged_usd: "0.00009" }]);
});

test("models and providers are told", async () => {
  expect((await both("model", "list", "--medium", "speech")).json).toContainEqual(
    expect.objectContaining({
      model: "openai/tts-1",
      medium: "speech",
      price: ["$15 a million input character"],
    }),
  );
  expect((await both("model", "show", "local/painter")).json).toMatchObject({ medium: "image" });
  expect((await run("model", "show", "no/such")).code).toBe(4);
  const providers = await both("provider", "list");
  expect(providers.json).toContainEqual(
    expect.objectContaining({ provider: "openai", medium: "speech", state: "on" }),
  );
  expect((await both("provider", "test", "openai")).json).toMatchObject({ result: "openai answers" });
  expect((await run("provider", "test", "nobody")).code).toBe(4);
});

test("destinations are told, tried, paused and resumed", async () => {
  const named = [destinationId, "--account", accountId];
  expect((await both("destination", "list", "--account", accountId)).json).toMatchObject([
    { name: "Hook", state: "on" },
  ]);
  expect((await both("destination", "show", ...named)).json).toMatchObject({
    id: destinationId,
    type: "webhook",
  });
  expect((await both("destination", "pause", ...named)).json.state).toBe("paused by an operator");
  expect((await both("destination", "resume", ...named)).json.state).toBe("on");
  await both("destination", "deliveries", ...named);
  const tested = await run("destination", "test", ...named);
  expect(tested).toMatchObject({ code: 1, out: expect.stringMatching(/did not take it/) });
  tried.add("destination test");
  expect((await both("destination", "reseal")).json).toMatchObject({ unreadable: 0 });
});

test("own keys at providers, and the keys of processes", async () => {
  expect((await both("provider-key", "list", "--account", accountId)).json).toMatchObject([
    { provider: "openai" },
  ]);
  expect((await both("provider-key", "reseal")).json).toMatchObject({ unreadable: 0 });
  const directory = join(dataDir, "spare-keys");
  expect((await both("service-key", "create", "--directory", directory)).table).toContain("admin.jwk");
  expect((await both("service-key", "prune", "--directory", directory)).json).toEqual([]);
});

test("the books agree, roll-ups are rebuilt, and the doctor finds nothing wrong", async () => {
  const today = new Date().toISOString().slice(0, 10);
  expect((await both("books", "reconcile", "--wait", "60")).json).toMatchObject({ differences: [] });
  expect((await both("activity", "rebuild", "--from", today)).json).toEqual([
    { date: today, complete: true, differing: 0 },
  ]);
  const { table, json } = await both("doctor");
  expect(headOf(table)).toEqual(["WHAT", "HEALTH", "FOUND", "REMEDY"]);
  expect(json.filter(({ health }: { health: string }) => health !== "ok")).toEqual([]);
});

test("those that need no service say what is away, in one line", async () => {
  const away = { KAFKA_BROKERS: "127.0.0.1:1", DATABASE_URL: "postgres://a:b@127.0.0.1:1/none" };
  for (const path of ["topic create", "topic check", "dead-letter replay", "database migrate"]) {
    const words = [
      ...path.split(" "),
      ...(path === "dead-letter replay" ? ["--group", "usage", "--timeout", "1"] : []),
    ];
    const { code, error } = await commandHere(words, { env: away });
    expect({ path, code }).toEqual({ path, code: 5 });
    expect(error.trim().split("\n").at(-1)).toMatch(/^error: .+ (can't be|has not answered)/);
    tried.add(path);
  }
});

test("every verb was tried", () => {
  const all = nouns.flatMap(({ name, verbs }) => verbs.map((verb) => `${name} ${verb.name}`.trim()));
  expect(all.filter((path) => !tried.has(path))).toEqual([]);
});
