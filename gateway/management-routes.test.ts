import type { Interceptor } from "@connectrpc/connect";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CreditService } from "../gen/media/account/v1/credit_service_pb.ts";
import { KeyService } from "../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../gen/media/account/v1/provider_key_service_pb.ts";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { UsageService } from "../gen/media/usage/v1/usage_service_pb.ts";
import { actingForKey } from "../lib/identity/caller.ts";
import { createLocalTransport, createRpcClient } from "../lib/rpc/client.ts";
import { requestIdKey } from "../lib/rpc/request-context.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import { accountKey, accountRoutes, providerKey } from "../test/fakes/fake-account.ts";
import { activityItem, generationEvent, seriesPoint, usageRoutes } from "../test/fakes/fake-usage.ts";
import {
  errorOf,
  type GatewayServer,
  startGatewayServer,
  testKeys,
} from "../test/support/services/gateway-server.ts";

const hash = "cd".repeat(32);
const id = "b0a3c1de-7d51-4c36-9f0c-7b6f7c0b5a10";

interface Row {
  readonly method: string;
  readonly path: string;
  readonly rpc: string;
  readonly status?: 201;
  readonly anyKey?: true;
  readonly body?: object;
}

const rows: readonly Row[] = [
  { method: "GET", path: "/activity", rpc: "ListActivity" },
  { method: "GET", path: "/activity/series?step=day", rpc: "ListActivitySeries" },
  { method: "GET", path: "/generation?id=gen-1", rpc: "GetGeneration", anyKey: true },
  { method: "GET", path: "/generations", rpc: "ListGenerations" },
  { method: "GET", path: "/keys", rpc: "ListKeys" },
  { method: "POST", path: "/keys", rpc: "CreateKey", status: 201, body: { name: "a" } },
  { method: "GET", path: `/keys/${hash}`, rpc: "GetKey" },
  { method: "PATCH", path: `/keys/${hash}`, rpc: "UpdateKey", body: { name: "a" } },
  { method: "DELETE", path: `/keys/${hash}`, rpc: "DeleteKey" },
  { method: "POST", path: `/keys/${hash}/rotate`, rpc: "RotateKey", status: 201, body: { grace_s: 1 } },
  { method: "GET", path: "/key", rpc: "GetCurrentKey", anyKey: true },
  { method: "GET", path: "/credits", rpc: "GetCredits" },
  { method: "GET", path: "/credits/ledger", rpc: "ListLedgerEntries" },
  { method: "GET", path: "/byok", rpc: "ListProviderKeys" },
  {
    method: "POST",
    path: "/byok",
    rpc: "CreateProviderKey",
    status: 201,
    body: { provider: "acme", key: "k" },
  },
  { method: "GET", path: `/byok/${id}`, rpc: "GetProviderKey" },
  { method: "PATCH", path: `/byok/${id}`, rpc: "UpdateProviderKey", body: { disabled: true } },
  { method: "DELETE", path: `/byok/${id}`, rpc: "DeleteProviderKey" },
];
const closedRows = rows.filter(({ anyKey }) => anyKey === undefined);
const bodyRows = rows.filter(({ body }) => body !== undefined);

let gateway: GatewayServer;
let failure: Error | undefined;
let calls: { rpc: string; keyHash: string | undefined; requestId: string }[];

/** Notes each call to a service, for whom it is made, and fails it when the test says so. */
const observe: Interceptor = (next) => (request) => {
  const { contextValues, method } = request;
  const keyHash = contextValues.get(actingForKey)?.keyHash;
  calls.push({ rpc: method.name, keyHash, requestId: contextValues.get(requestIdKey) });
  return next(request);
};

function answering<A>(answer: () => A) {
  return () => {
    if (failure !== undefined) throw failure;
    return answer();
  };
}

beforeAll(async () => {
  const key = answering(() => ({ key: accountKey() }));
  const newKey = answering(() => ({ key: accountKey(), secret: "sk-new" }));
  const account = accountRoutes({
    keys: {
      listKeys: answering(() => ({ keys: [accountKey()], totalCount: 1n })),
      createKey: newKey,
      getKey: key,
      updateKey: key,
      deleteKey: answering(() => ({})),
      rotateKey: newKey,
      getCurrentKey: key,
    },
    credits: {
      getCredits: answering(() => ({
        totalCreditsNanoUsd: 25_000_000_001n,
        totalUsageNanoUsd: 1_250_000_003n,
        heldNanoUsd: 7n,
      })),
      listLedgerEntries: answering(() => ({})),
    },
    providerKeys: {
      listProviderKeys: answering(() => ({ providerKeys: [providerKey()] })),
      createProviderKey: answering(() => ({ providerKey: providerKey() })),
      getProviderKey: answering(() => ({ providerKey: providerKey() })),
      updateProviderKey: answering(() => ({ providerKey: providerKey() })),
      deleteProviderKey: answering(() => ({})),
    },
  });
  const usage = usageRoutes({
    listActivity: answering(() => ({ items: [activityItem()] })),
    listActivitySeries: answering(() => ({ points: [seriesPoint()] })),
    getGeneration: answering(() => ({ event: generationEvent() })),
    listGenerations: answering(() => ({ events: [generationEvent()] })),
  });
  const options = { interceptors: [observe] };
  const accountTransport = createLocalTransport(account, options);
  gateway = await startGatewayServer({
    settings: { corsOrigins: ["https://app.test"] },
    clients: {
      usage: createRpcClient(UsageService, createLocalTransport(usage, options)),
      keys: createRpcClient(KeyService, accountTransport),
      credits: createRpcClient(CreditService, accountTransport),
      providerKeys: createRpcClient(ProviderKeyService, accountTransport),
    },
  });
});

beforeEach(() => {
  failure = undefined;
  calls = [];
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

interface Change {
  readonly method?: string;
  readonly path?: string;
  /** Sent as it is. */
  readonly body?: string | undefined;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function send(row: Row, change: Change = {}): Promise<Response> {
  const { method = row.method, path = row.path, key = testKeys.management } = change;
  const body = "body" in change ? change.body : row.body && JSON.stringify(row.body);
  return fetch(`${gateway.baseUrl}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...change.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
}

/** A fault in the body, where there is one. */
const notJson = ({ body }: Row): Change => (body === undefined ? {} : { body: "not json" });

test("credits are shown in USD", async () => {
  const response = await fetch(`${gateway.baseUrl}/api/v1/credits`, {
    headers: { authorization: `Bearer ${testKeys.management}` },
  });
  expect(await response.json()).toEqual({
    data: { total_credits: 25.000000001, total_usage: 1.250000003, held: 7e-9 },
  });
});

describe.for(rows)("$method $path", (row) => {
  const asks = { rpc: row.rpc };

  test("asks the service once, for the caller and under the request's id", async () => {
    const response = await send(row, { headers: { "x-request-id": "my-request" } });
    expect([response.status, response.headers.get("x-request-id")]).toEqual([
      row.status ?? 200,
      "my-request",
    ]);
    await response.json();
    expect(calls).toEqual([{ ...asks, keyHash: "ab".repeat(32), requestId: "my-request" }]);
  });

  test.for([
    [testKeys.unknown, 401, "key_unknown"],
    [testKeys.expired, 401, "key_expired"],
    [testKeys.disabled, 401, "key_disabled"],
    [testKeys.down, 500, "service_unavailable"],
  ] as const)("refuses the key %s", async ([key, status, reason]) => {
    const response = await send(row, { key, ...notJson(row) });
    expect(await errorOf(response)).toEqual({ status, reason });
    expect(calls).toEqual([]);
  });

  test("refuses who brings no key, before all else", async () => {
    const response = await send(row, { headers: { authorization: "" }, body: undefined });
    expect(await response.clone().json()).toMatchObject({
      error: { message: "Missing Authentication header" },
    });
    expect(await errorOf(response)).toEqual({ status: 401, reason: "key_missing" });
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(calls).toEqual([]);
  });

  test.for([
    [new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "secret words"), 500, "service_unavailable"],
    [new DomainError(ErrorReason.TIMED_OUT, "secret words"), 500, "timed_out"],
    [new DomainError(ErrorReason.CALLER_NOT_ALLOWED, "secret words"), 500, "internal"],
    [new DomainError(ErrorReason.KEY_UNKNOWN, "secret words"), 500, "internal"],
    [new DomainError(ErrorReason.RATE_LIMITED, "secret words"), 500, "rate_limited"],
    [new TypeError("secret words"), 500, "internal"],
    [new DomainError(ErrorReason.KEY_EXPIRED, "secret words"), 401, "key_expired"],
  ] as const)("answers what a service failed with: %o", async ([error, status, reason]) => {
    failure = error;
    const response = await send(row);
    expect(await response.clone().text()).not.toContain("secret words");
    expect(await errorOf(response)).toEqual({ status, reason });
  });

  test("knows HEAD where it knows GET, and no other method", async () => {
    const head = await send(row, { method: "HEAD", body: undefined });
    const isGet = rows.some(({ method, path }) => method === "GET" && path === row.path);
    expect([head.status, await head.text()]).toEqual([isGet ? 200 : 404, ""]);
    if (row.method === "GET") {
      const get = await send(row);
      const length = head.headers.get("content-length");
      expect(Buffer.byteLength(await get.text())).toBe(Number(length));
    }
    for (const method of ["PUT", "OPTIONS"]) {
      const other = await send(row, { method, body: undefined });
      expect(await errorOf(other)).toEqual({ status: 404, reason: "route_unknown" });
    }
  });

  test("may be called from pages of listed origins", async () => {
    const preflight = await send(row, {
      method: "OPTIONS",
      body: undefined,
      headers: { origin: "https://app.test", "access-control-request-method": row.method, authorization: "" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-methods")).toContain(row.method);
  });
});

describe.for(closedRows)("$method $path is for management keys", (row) => {
  test.for([testKeys.speech, testKeys.images])("and not for %s, whatever else is wrong", async (key) => {
    const path = row.path === "/activity" ? "/activity?date=x" : row.path.replace(hash, "x");
    const response = await send(row, { key, path, ...notJson(row) });
    expect(await response.clone().json()).toEqual({
      error: {
        code: 403,
        message: "Only management keys can perform this operation",
        metadata: { reason: "management_key_required" },
      },
    });
    expect(calls).toEqual([]);
  });
});

describe.for(bodyRows)("the body of $method $path", (row) => {
  const unknownRecord = new DomainError(ErrorReason.RECORD_UNKNOWN, "no such record");
  const badHash = row.path.replace(hash, "x");
  const tooLarge = JSON.stringify({ ...row.body, more: "x".repeat(300 << 10) });

  test.for([
    ["what does not parse", { body: '{"name":' }, "invalid_body"],
    ["a list", { body: "[]" }, "invalid_body"],
    ["null", { body: "null" }, "invalid_body"],
    ["another type", { body: "{}", headers: { "content-type": "text/plain" } }, "invalid_body"],
    ["an encoding", { body: "{}", headers: { "content-encoding": "gzip" } }, "invalid_body"],
    ["what is too large", { body: tooLarge }, "body_too_large"],
    [
      "what is too large before its type",
      { body: tooLarge, headers: { "content-type": "text/plain" } },
      "body_too_large",
    ],
    ["a fault before a hash that is none", { body: "[]", path: badHash }, "invalid_body"],
  ] as const)("must not be %s", async ([, change, reason]) => {
    failure = unknownRecord;
    const response = await send(row, change);
    expect(await response.clone().json()).toMatchObject({ error: { message: "Invalid request parameters" } });
    expect(await errorOf(response)).toEqual({ status: 400, reason });
    expect(calls).toEqual([]);
  });

  test("whatever it holds, the answer is one of the contract's and never 500", async () => {
    const members = ["name", "limit", "expires_at", "scopes", "grace_s", "provider", "key", "disabled"];
    const text = fc.oneof(
      fc.json(),
      fc.string(),
      fc
        .dictionary(fc.constantFrom(...members), fc.jsonValue())
        .map((fields) => JSON.stringify({ ...row.body, ...fields })),
    );
    await fc.assert(
      fc.asyncProperty(text, async (body) => {
        const response = await send(row, { body });
        expect([row.status ?? 200, 400]).toContain(response.status);
        await response.arrayBuffer();
      }),
      { numRuns: 60 },
    );
  });
});

describe.for(["/keys/", "/byok/"])("an unknown record under %s", (path) => {
  test("is 404 for whoever may ask", async () => {
    failure = new DomainError(ErrorReason.RECORD_UNKNOWN, "no such record");
    for (const row of rows.filter((other) => other.path.startsWith(path))) {
      const response = await send(row);
      expect(await response.clone().json()).toMatchObject({ error: { message: "Resource not found" } });
      expect(await errorOf(response)).toEqual({ status: 404, reason: "record_unknown" });
    }
  });
});

describe("an answer without what it must hold", () => {
  test("is our fault", async () => {
    await using empty = await startGatewayServer({
      usageHandlers: { getGeneration: () => ({}) },
      accountHandlers: {
        keys: { getKey: () => ({}), getCurrentKey: () => ({ key: { hash } }) },
        providerKeys: { createProviderKey: () => ({}) },
      },
    });
    for (const row of rows) {
      if (!["GetGeneration", "GetKey", "GetCurrentKey", "CreateProviderKey"].includes(row.rpc)) continue;
      const response = await fetch(`${empty.baseUrl}/api/v1${row.path}`, {
        method: row.method,
        headers: { authorization: `Bearer ${testKeys.management}`, "content-type": "application/json" },
        ...(row.body === undefined ? {} : { body: JSON.stringify(row.body) }),
      });
      expect(await errorOf(response), row.rpc).toEqual({ status: 500, reason: "internal" });
    }
  });
});
