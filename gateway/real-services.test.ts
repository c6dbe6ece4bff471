import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountKind } from "../gen/media/account/v1/account_pb.ts";
import { hashApiKey, isApiKey, maskApiKey } from "../lib/identity/api-key.ts";
import { readServiceKey } from "../lib/identity/service-key.ts";
import { createTokenSigner } from "../lib/identity/service-token.ts";
import { errorOf, type GatewayServer, startGatewayServer } from "../test/support/services/gateway-server.ts";
import { testUuid, usageEvent } from "../test/support/services/usage-events.ts";
import {
  startTestUsageServer,
  type TestUsageAccount,
  type TestUsageServer,
} from "../test/support/services/usage-server.ts";
import { createGatewayClients } from "./clients.ts";

let services: TestUsageServer;
let gateway: GatewayServer;
let personal: TestUsageAccount;
let organization: TestUsageAccount;

beforeAll(async () => {
  services = await startTestUsageServer();
  const signer = createTokenSigner(
    await readServiceKey(services.account.keyFiles.keyFile("gateway"), "gateway"),
  );
  const nowhere = "http://127.0.0.1:9";
  const others = { speech: nowhere, image: nowhere, destination: nowhere };
  const urls = { account: services.account.url, usage: services.url, ...others };
  gateway = await startGatewayServer({
    clients: createGatewayClients(urls, signer, { maxBodyBytes: 1 << 20 }),
  });
  personal = await services.newAccount();
  organization = await services.newAccount(AccountKind.ORGANIZATION);
});

afterAll(async () => {
  await gateway.close({ delayMs: 0, timeoutMs: 0 });
  await services.close();
});

function call(method: string, path: string, body?: object, key = personal.managementKey) {
  return fetch(`${gateway.baseUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

interface KeyAnswer {
  readonly data: { readonly hash: string } & Record<string, unknown>;
  readonly key: string;
}

async function makeKey(body: object, key?: string): Promise<KeyAnswer> {
  const response = await call("POST", "/keys", body, key);
  expect(response.status).toBe(201);
  return (await response.json()) as KeyAnswer;
}

const nothingSpent = { usage: 0, usage_daily: 0, byok_usage: 0, byok_usage_monthly: 0 };

describe("the account service behind the routes", () => {
  test("makes a key, which works, and shows the key itself once", async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const limits = { limit: 0.123456789, limit_reset: "weekly", rate_limit_per_minute: 5 };
    const { data, key } = await makeKey({
      name: "Wébsite",
      scopes: ["speech"],
      expires_at: expiresAt,
      ...limits,
    });
    expect(isApiKey(key)).toBe(true);
    expect(data).toMatchObject({
      ...limits,
      ...nothingSpent,
      hash: hashApiKey(key),
      name: "Wébsite",
      label: maskApiKey(key),
      kind: "inference",
      scopes: ["speech"],
      disabled: false,
      limit_remaining: 0.123456789,
      expires_at: expiresAt,
      updated_at: null,
      creator_user_id: null,
      workspace_id: personal.accountId,
    });
    const again = await (await call("GET", `/keys/${data.hash}`)).text();
    expect(JSON.parse(again)).toEqual({ data });
    expect(again).not.toContain(key);
    const own = await call("GET", "/key", undefined, key);
    const used = { ...data, last_used_at: expect.any(String), is_management_key: false };
    expect(await own.json()).toMatchObject({ data: used });
  });

  test("keeps the account's last management key that works", async () => {
    const hash = hashApiKey(personal.managementKey);
    const refused = { status: 409, reason: "last_management_key" };
    expect(await errorOf(await call("DELETE", `/keys/${hash}`))).toEqual(refused);
    expect(await errorOf(await call("PATCH", `/keys/${hash}`, { disabled: true }))).toEqual(refused);
    const other = await makeKey({ name: "another", kind: "management" });
    expect(await (await call("DELETE", `/keys/${other.data.hash}`)).json()).toEqual({ deleted: true });
    expect(await errorOf(await call("DELETE", `/keys/${hash}`))).toEqual(refused);
  });

  test("changes a key, takes limits away again, and deletes it", async () => {
    const { data } = await makeKey({ name: "a", limit: 1, expires_at: "2999-01-01T00:00:00Z" });
    const path = `/keys/${data.hash}`;
    const changed = await call("PATCH", path, {
      name: "b",
      limit: 2.5,
      limit_reset: "daily",
      disabled: true,
    });
    expect(await changed.json()).toMatchObject({
      data: { name: "b", limit: 2.5, limit_reset: "daily", disabled: true, updated_at: expect.any(String) },
    });
    const cleared = await call("PATCH", path, { limit: null, limit_reset: null, expires_at: null });
    expect(await cleared.json()).toMatchObject({
      data: { name: "b", limit: null, limit_remaining: null, limit_reset: null, expires_at: null },
    });
    expect(await (await call("DELETE", path)).json()).toEqual({ deleted: true });
    for (const method of ["GET", "DELETE"]) {
      expect(await errorOf(await call(method, path))).toEqual({ status: 404, reason: "record_unknown" });
    }
    expect((await errorOf(await call("PATCH", path, {}))).status).toBe(404);
    expect((await errorOf(await call("POST", `${path}/rotate`))).status).toBe(404);
  });

  test("replaces a key by one that inherits", async () => {
    const old = await makeKey({ name: "a", limit: 3, scopes: ["images"], rate_limit_per_minute: 9 });
    const response = await call("POST", `/keys/${old.data.hash}/rotate`, { grace_s: 3600 });
    expect(response.status).toBe(201);
    const { data, key } = (await response.json()) as KeyAnswer;
    expect(data).toMatchObject({
      hash: hashApiKey(key),
      name: "a",
      limit: 3,
      scopes: ["images"],
      rate_limit_per_minute: 9,
    });
    for (const each of [old.key, key]) {
      expect((await call("GET", "/key", undefined, each)).status).toBe(200);
    }
    const twice = await call("POST", `/keys/${old.data.hash}/rotate`);
    expect(await errorOf(twice)).toEqual({ status: 400, reason: "invalid_body" });
  });

  test("lists keys a page at a time, disabled ones when asked for", async () => {
    const own = await services.newAccount();
    const made: string[] = [];
    for (const name of ["a", "b", "c"]) {
      made.unshift((await makeKey({ name }, own.managementKey)).data.hash);
    }
    await call("PATCH", `/keys/${made[1]}`, { disabled: true }, own.managementKey);
    const first = [own.inferenceKeyHash, hashApiKey(own.managementKey)];
    const listed = async (query: string) => {
      const response = await call("GET", `/keys${query}`, undefined, own.managementKey);
      const { data, total_count } = (await response.json()) as {
        data: KeyAnswer["data"][];
        total_count: number;
      };
      return { hashes: data.map(({ hash }) => hash), total_count };
    };
    expect(await listed("?include_disabled=true")).toEqual({ hashes: [...made, ...first], total_count: 5 });
    expect(await listed("")).toEqual({ hashes: [made[0], made[2], ...first], total_count: 4 });
    expect(await listed("?offset=1&limit=2")).toEqual({ hashes: [made[2], first[0]], total_count: 4 });
    expect(await errorOf(await call("GET", "/keys?limit=101"))).toEqual({
      status: 400,
      reason: "invalid_body",
    });
  });

  test("keeps accounts apart and keys in their place", async () => {
    const hash = personal.inferenceKeyHash;
    const stranger = organization.managementKey;
    for (const [method, path, body] of [
      ["GET", `/keys/${hash}`],
      ["PATCH", `/keys/${hash}`, { disabled: true }],
      ["DELETE", `/keys/${hash}`],
      ["POST", `/keys/${hash}/rotate`, {}],
    ] as const) {
      expect((await errorOf(await call(method, path, body, stranger))).status).toBe(404);
      expect(await errorOf(await call(method, path, body, personal.inferenceKey))).toEqual({
        status: 403,
        reason: "management_key_required",
      });
    }
    const owners = [personal, organization] as const;
    const own = owners.map(({ inferenceKey }) => call("GET", "/key", undefined, inferenceKey));
    const answers = await Promise.all(own.map(async (answer) => (await answer).json()));
    expect(answers).toMatchObject([
      { data: { workspace_id: personal.accountId, organization_id: null } },
      { data: { workspace_id: organization.accountId, organization_id: organization.accountId } },
    ]);
  });

  test("names faults as the interface does", async () => {
    const management = { name: "a", kind: "management", limit: 1, creator_user_id: testUuid(1) };
    const response = await call("POST", "/keys", management);
    const { error } = (await response.json()) as { error: { metadata: { issues: { path: string }[] } } };
    expect(error.metadata.issues.map(({ path }) => path)).toContain("limit");
    const elsewhere = await call("POST", "/keys", { name: "a", creator_user_id: organization.memberId });
    expect([elsewhere.status, await elsewhere.json()]).toMatchObject([
      400,
      { error: { metadata: { issues: [{ path: "creator_user_id" }] } } },
    ]);
    const { data } = await makeKey({ name: "mine" }, organization.managementKey);
    expect(data.creator_user_id).toBe(organization.memberId);
  });

  test("states the credits to the nano-dollar", async () => {
    const { accountId, managementKey } = await services.newAccount();
    const admin = await services.account.admin();
    await admin.grantCredit({ accountId, amountNanoUsd: 25_000_000_001n, grantId: "grant-1" });
    expect(await (await call("GET", "/credits", undefined, managementKey)).json()).toEqual({
      data: { total_credits: 25.000000001, total_usage: 0, held: 0 },
    });
  });

  test("shows the ledger page by page, and names faults as the interface does", async () => {
    const { accountId, managementKey, inferenceKey } = await services.newAccount();
    const admin = await services.account.admin();
    const grants = ["one", "two", "three"].map((name) => `${accountId}-${name}`);
    for (const grantId of grants) await admin.grantCredit({ accountId, amountNanoUsd: 1n, grantId });
    const ask = (query: string, key = managementKey) =>
      call("GET", `/credits/ledger${query}`, undefined, key);
    const first = (await (await ask("?limit=2")).json()) as { data: object[]; next_cursor: string };
    const second = (await (await ask(`?limit=2&cursor=${first.next_cursor}`)).json()) as typeof first;
    expect(second.next_cursor).toBeNull();
    expect([...first.data, ...second.data]).toEqual(
      grants.toReversed().map((grant_id) => ({
        type: "grant",
        amount: 1e-9,
        created_at: expect.stringMatching(/Z$/),
        generation_id: null,
        grant_id,
      })),
    );
    const refused = await ask("?limit=101&cursor=zero");
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { metadata: { issues: [{ path: "cursor" }, { path: "limit" }] } } },
    ]);
    expect((await ask("?limit=0")).status).toBe(400);
    expect((await errorOf(await ask("", inferenceKey))).reason).toBe("management_key_required");
  });

  test("keeps provider keys, one for each provider", async () => {
    const body = { provider: "openai", key: "sk-proj-0123456789abcdefghijklmnop", name: "Team" };
    const response = await call("POST", "/byok", body);
    const text = await response.text();
    expect([response.status, text.includes(body.key)]).toEqual([201, false]);
    const { data } = JSON.parse(text) as { data: { id: string } };
    expect(data).toMatchObject({ provider: "openai", name: "Team", disabled: false });
    expect(await (await call("GET", "/byok")).json()).toEqual({ data: [data], total_count: 1 });
    expect(await errorOf(await call("POST", "/byok", body))).toEqual({
      status: 409,
      reason: "count_limit_reached",
    });
    const unknown = await call("POST", "/byok", { provider: "nobody", key: "secret" });
    expect([unknown.status, await unknown.json()]).toMatchObject([
      400,
      { error: { metadata: { issues: [{ path: "provider" }] } } },
    ]);
    const path = `/byok/${data.id}`;
    expect(await (await call("GET", path)).json()).toEqual({ data });
    const changed = await call("PATCH", path, { disabled: true, name: null });
    expect(await changed.json()).toEqual({ data: { ...data, disabled: true, name: null } });
    const bad = await call("PATCH", path, { key: "with blanks" });
    expect(await bad.json()).toMatchObject({ error: { metadata: { issues: [{ path: "key" }] } } });
    expect((await errorOf(await call("DELETE", path, undefined, organization.managementKey))).status).toBe(
      404,
    );
    expect(await (await call("DELETE", path)).json()).toEqual({ deleted: true });
    expect((await errorOf(await call("DELETE", path))).status).toBe(404);
    expect(await (await call("GET", "/byok")).json()).toEqual({ data: [], total_count: 0 });
  });
});

describe("the usage service behind the routes", () => {
  const today = new Date().toISOString().slice(0, 10);

  test("shows a generation to the account's keys and to nobody else", async () => {
    const { accountId, inferenceKeyHash: keyHash } = personal;
    await services.record(usageEvent({ eventId: "gen-tts-real", accountId, keyHash, ended: Date.now() }));
    for (const key of [personal.inferenceKey, personal.managementKey]) {
      const response = await call("GET", "/generation?id=gen-tts-real", undefined, key);
      expect(await response.json()).toMatchObject({
        data: {
          id: "gen-tts-real",
          api_type: "tts",
          usage: 5e-9,
          latency: 1000,
          workspace_id: accountId,
          outcome: "succeeded",
        },
      });
    }
    for (const [path, key] of [
      ["/generation?id=gen-tts-real", organization.inferenceKey],
      ["/generation?id=gen-tts-none", personal.inferenceKey],
    ] as const) {
      expect(await errorOf(await call("GET", path, undefined, key))).toEqual({
        status: 404,
        reason: "record_unknown",
      });
    }
  });

  test("shows a series whose hours and days agree with the activity", async () => {
    const { accountId, managementKey } = await services.newAccount();
    const ended = Date.now();
    await services.record(usageEvent({ eventId: "gen-tts-series", accountId, ended }));
    const ask = async (path: string) => (await call("GET", path, undefined, managementKey)).json();
    const activity = (await ask("/activity")) as { data: object[] };
    for (const step of ["hour", "day"]) {
      expect(await ask(`/activity/series?step=${step}&group_by=model`)).toMatchObject({
        data: [{ group: "acme/voice", requests: 1, errors: 0, usage: 5e-9 }],
        first_byte_bounds_ms: expect.arrayContaining([100, 51_200]),
      });
    }
    expect(activity.data).toMatchObject([{ requests: 1, usage: 5e-9 }]);
    const before = "/activity/series?step=hour&from=2000-01-01T00:00:00Z";
    const refused = await call("GET", before, undefined, managementKey);
    expect(await errorOf(refused)).toEqual({ status: 400, reason: "invalid_body" });
  });

  test("lists generations by filter and page", async () => {
    const { accountId, managementKey, memberId } = organization;
    const events = [1, 2, 3].map((second) => {
      const ended = `2030-01-01T00:00:0${second}.000Z`;
      return usageEvent({
        eventId: `gen-tts-list-${second}`,
        accountId,
        memberId,
        ended,
        sessionId: "listed",
      });
    });
    await services.record(...events);
    const ask = async (query: string) => {
      const response = await call("GET", `/generations?session_id=listed${query}`, undefined, managementKey);
      return (await response.json()) as { data: { id: string }[]; next_cursor: string | null };
    };
    const first = await ask(`&limit=2&outcome=succeeded&user_id=${memberId}`);
    expect(first.data.map(({ id }) => id)).toEqual(["gen-tts-list-3", "gen-tts-list-2"]);
    expect(await ask(`&limit=2&cursor=${encodeURIComponent(first.next_cursor ?? "")}`)).toMatchObject({
      data: [{ id: "gen-tts-list-1", user_id: memberId, list_price: 5e-9 }],
      next_cursor: null,
    });
    expect(await ask("&from=2030-01-01T00:00:02Z&to=2030-01-01T00:00:03Z")).toMatchObject({
      data: [{ id: "gen-tts-list-2", ended_at: "2030-01-01T00:00:02.000Z" }],
    });
    const refused = await call("GET", "/generations?cursor=nothing&limit=1000", undefined, managementKey);
    expect(await refused.json()).toMatchObject({
      error: { metadata: { issues: [{ path: "cursor" }, { path: "limit" }] } },
    });
  });

  test("sums up what an account did", async () => {
    const { accountId, managementKey, inferenceKeyHash: keyHash, memberId } = organization;
    const event = { accountId, keyHash, memberId, ended: Date.now() };
    const events = ["gen-tts-a", "gen-tts-b"].map((eventId) => usageEvent({ ...event, eventId }));
    await services.record(...events);
    const ask = async (query: string) =>
      (await call("GET", `/activity${query}`, undefined, managementKey)).json();
    const both = {
      date: new Date(event.ended).toISOString().slice(0, 10),
      endpoint_id: testUuid(100),
      model: "acme/voice",
      model_permaslug: "acme/voice-2029",
      provider_name: "Acme",
      requests: 2,
      prompt_tokens: 6,
      completion_tokens: 4,
      reasoning_tokens: 2,
      cached_tokens: 4,
      usage: 1e-8,
      byok_usage_inference: 0,
    };
    for (const query of ["", `?api_key_hash=${keyHash.toUpperCase()}`, `?user_id=${memberId}`]) {
      expect(await ask(query), query).toEqual({ data: [both] });
    }
    for (const query of [`?api_key_hash=${"0".repeat(64)}`, `?user_id=${testUuid(9)}`]) {
      expect(await ask(query), query).toEqual({ data: [] });
    }
  });

  test.for([
    ["?date=1999-01-01", "date"],
    ["?date=2030-02-30", "date"],
    [`?user_id=${testUuid(1)}`, "user_id"],
  ] as const)("refuses %s of a personal account", async ([query, path]) => {
    const response = await call("GET", `/activity${query}`);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { metadata: { issues: [{ path }] } } },
    ]);
  });

  test("is for management keys", async () => {
    const response = await call("GET", `/activity?date=${today}`, undefined, personal.inferenceKey);
    expect(await errorOf(response)).toEqual({ status: 403, reason: "management_key_required" });
  });
});
