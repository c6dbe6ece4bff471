import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import {
  CreateKeyRequestSchema,
  type Key,
  KeyKind,
  KeyScope,
  LimitReset,
  ListKeysRequestSchema,
  UpdateKeyRequestSchema,
} from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { nanoUsdPerUsd, usdNumber } from "../../lib/money/nano-usd.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { accountKey } from "../../test/fakes/fake-account.ts";
import { errorOf, testKeys } from "../../test/support/services/gateway-server.ts";
import { faultsOf, PlayedGateway } from "../../test/support/services/played-gateway.ts";

const hash = "cd".repeat(32);
const secret = `sk-${"s".repeat(43)}`;

let key: Key;

const gateway = new PlayedGateway((answer) => ({
  accountHandlers: {
    keys: {
      listKeys: answer(() => ({ keys: Array.from({ length: 100 }, () => key), totalCount: 1000n })),
      createKey: answer(() => ({ secret, key })),
      getKey: answer(() => ({ key })),
      getCurrentKey: answer(() => ({ key })),
      updateKey: answer(() => ({ key })),
      deleteKey: answer(() => ({})),
      rotateKey: answer(() => ({ secret, key })),
    },
  },
}));
const { asked, call } = gateway;

beforeEach(() => {
  key = accountKey();
});

/** The key of the fixture as every answer shows it. */
const shown = {
  hash,
  name: "Website",
  label: "sk-abc…wxyz",
  kind: "inference",
  scopes: ["speech", "images"],
  disabled: true,
  limit: 5.000000001,
  limit_remaining: 4.999999999,
  limit_reset: "weekly",
  include_byok_in_limit: true,
  usage: 4e-9,
  usage_daily: 1e-9,
  usage_weekly: 2e-9,
  usage_monthly: 3e-9,
  byok_usage: 4,
  byok_usage_daily: 1.5,
  byok_usage_weekly: 2.5,
  byok_usage_monthly: 3.5,
  rate_limit_per_minute: 60,
  created_at: "2030-01-31T12:00:00.000Z",
  updated_at: "2030-01-31T12:00:00.001Z",
  last_used_at: "2030-01-31T12:00:00.003Z",
  expires_at: "2030-01-31T12:00:00.002Z",
  creator_user_id: "member-1",
  workspace_id: "account-1",
  external_user: null,
};

describe("a key", () => {
  test.for([
    ["GET", `/keys/${hash}`, undefined, 200, {}],
    ["PATCH", `/keys/${hash}`, {}, 200, {}],
    ["POST", "/keys", { name: "Website" }, 201, { key: secret }],
    ["POST", `/keys/${hash}/rotate`, {}, 201, { key: secret }],
  ] as const)("is shown the same by %s %s, itself only when it is new", async (row) => {
    const [method, path, body, status, more] = row;
    const response = await call(method, path, body);
    expect([response.status, response.headers.get("content-type")]).toEqual([status, "application/json"]);
    expect(response.headers.get("cache-control")).toBe(status === 201 ? "no-store" : null);
    expect(await response.json()).toEqual({ data: shown, ...more });
  });

  test("with nothing set shows null, 0 and false", async () => {
    key = accountKey({
      memberId: "",
      kind: KeyKind.MANAGEMENT,
      scopes: [],
      disabled: false,
      updatedAt: undefined,
      lastUsedAt: undefined,
      expiresAt: undefined,
      limitNanoUsd: undefined,
      limitRemainingNanoUsd: undefined,
      limitReset: LimitReset.UNSPECIFIED,
      includeByokInLimit: false,
      usage: undefined,
      byokUsage: undefined,
      rateLimitPerMinute: undefined,
    });
    const { data } = (await (await call("GET", `/keys/${hash}`)).json()) as { data: object };
    expect(data).toEqual({
      ...Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, emptyOf(name, value)])),
      kind: "management",
      scopes: [],
    });
  });

  const kept = ["hash", "name", "label", "created_at", "workspace_id"];
  const emptyOf = (name: string, value: unknown) => {
    if (kept.includes(name)) return value;
    if (name.includes("usage")) return 0;
    return typeof value === "boolean" ? false : null;
  };

  test("that asks about itself also learns what it is, whichever it is", async () => {
    const legacy = { interval: "1m", note: expect.any(String) };
    for (const credential of [testKeys.speech, testKeys.images]) {
      const response = await call("GET", "/key", undefined, credential);
      expect(await response.json()).toEqual({
        data: {
          ...shown,
          is_management_key: false,
          is_provisioning_key: false,
          is_free_tier: false,
          free_model_daily_requests: { limit: 0, used: 0, remaining: 0 },
          budgets: [expect.objectContaining({ scope: "key_limit", limit_usd: 5.000000001 })],
          effective_budget: expect.objectContaining({ scope: "key_limit" }),
          organization_id: null,
          allowed_data_regions: ["global"],
          rate_limit: { requests: 60, ...legacy },
        },
      });
    }
    key = accountKey({ kind: KeyKind.MANAGEMENT, scopes: [], rateLimitPerMinute: undefined });
    expect(await (await call("GET", "/key")).json()).toMatchObject({
      data: {
        is_management_key: true,
        is_provisioning_key: true,
        is_free_tier: false,
        rate_limit: { requests: -1, ...legacy },
      },
    });
  });

  test("that was deleted after it was let in is refused, not missing", async () => {
    gateway.failure = new DomainError(ErrorReason.RECORD_UNKNOWN, "no such record");
    const response = await call("GET", "/key");
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await errorOf(response)).toEqual({ status: 401, reason: "key_unknown" });
  });
});

describe("the list", () => {
  test.for([
    ["", {}],
    ["?workspace_id=x", {}],
    ["?offset=100&limit=7&include_disabled=true", { offset: 100, limit: 7, includeDisabled: true }],
    ["?include_disabled=True", { includeDisabled: true }],
    ["?include_disabled=false&offset=0", {}],
  ] as const)("is asked for a page: %s", async ([query, request]) => {
    const response = await call("GET", `/keys${query}`);
    expect(await response.json()).toEqual({
      data: Array.from({ length: 100 }, () => shown),
      total_count: 1000,
    });
    expect(asked).toEqual([create(ListKeysRequestSchema, request)]);
  });

  test.for([
    ["?offset=-1", ["offset"]],
    ["?offset=1.5&limit=", ["limit", "offset"]],
    ["?offset=99999999999", ["offset"]],
    ["?limit=1&limit=2", ["limit"]],
    ["?include_disabled=1", ["include_disabled"]],
  ] as const)("is refused for %s", async ([query, paths]) => {
    expect(await faultsOf(await call("GET", `/keys${query}`))).toEqual(paths);
    expect(asked).toEqual([]);
  });
});

describe("a new key", () => {
  test.for<[string, object, MessageInitShape<typeof CreateKeyRequestSchema>]>([
    ["the least", { name: "a" }, { name: "a" }],
    [
      "nulls, which count as absent",
      {
        name: "a",
        kind: null,
        scopes: null,
        limit: null,
        limit_reset: null,
        expires_at: null,
        rate_limit_per_minute: null,
        include_byok_in_limit: null,
        creator_user_id: null,
      },
      { name: "a" },
    ],
    ["unknown fields", { name: "a", workspace_id: "w", disabled: true, hash }, { name: "a" }],
    ["a management key", { name: "a", kind: "management" }, { name: "a", kind: KeyKind.MANAGEMENT }],
    [
      "everything",
      {
        name: "ä",
        kind: "inference",
        scopes: ["images"],
        limit: 0.5,
        limit_reset: "daily",
        include_byok_in_limit: true,
        expires_at: "2031-01-01T00:00:00+00:00",
        rate_limit_per_minute: 7,
        creator_user_id: "3b1f0d5e-8a5c-4f57-9a43-0d5f7f1c2e11",
      },
      {
        name: "ä",
        kind: KeyKind.INFERENCE,
        scopes: [KeyScope.IMAGES],
        limitNanoUsd: 500_000_000n,
        limitReset: LimitReset.DAILY,
        includeByokInLimit: true,
        expiresAt: timestampFromMs(Date.UTC(2031, 0, 1)),
        rateLimitPerMinute: 7,
        memberId: "3b1f0d5e-8a5c-4f57-9a43-0d5f7f1c2e11",
      },
    ],
    ["a limit of 0", { name: "a", limit: 0 }, { name: "a", limitNanoUsd: 0n }],
  ])("is asked for with %s", async ([, body, request]) => {
    expect((await call("POST", "/keys", body)).status).toBe(201);
    expect(asked).toEqual([create(CreateKeyRequestSchema, request)]);
  });

  test.for([
    [{}, ["name"]],
    [{ name: null }, ["name"]],
    [{ name: "" }, ["name"]],
    [{ name: "x".repeat(257) }, ["name"]],
    [{ name: 1, kind: "other", scopes: ["video"] }, ["name", "kind", "scopes.0"]],
    [{ name: "a", scopes: [] }, ["scopes"]],
    [{ name: "a", scopes: "speech" }, ["scopes"]],
    [{ name: "a", limit: -1 }, ["limit"]],
    [{ name: "a", limit: "5" }, ["limit"]],
    [{ name: "a", limit: 1e-10 }, ["limit"]],
    [{ name: "a", limit: 9_223_372_037 }, ["limit"]],
    [{ name: "a", limit_reset: "yearly" }, ["limit_reset"]],
    [{ name: "a", include_byok_in_limit: 1 }, ["include_byok_in_limit"]],
    [{ name: "a", expires_at: "2031-01-01T00:00:00+02:00" }, ["expires_at"]],
    [{ name: "a", expires_at: "2031-02-30T00:00:00Z" }, ["expires_at"]],
    [{ name: "a", expires_at: 1 }, ["expires_at"]],
    [{ name: "a", rate_limit_per_minute: 0 }, ["rate_limit_per_minute"]],
    [{ name: "a", rate_limit_per_minute: 1.5 }, ["rate_limit_per_minute"]],
    [{ name: "a", creator_user_id: "" }, ["creator_user_id"]],
    [{ name: "a", expires_at: "2031-01-01T00:00:00.1+00:01" }, ["expires_at"]],
    [{ name: "a\n" }, ["name"]],
    [{ name: "\u3000" }, ["name"]],
    [{ name: "a", creator_user_id: "member" }, ["creator_user_id"]],
    [{ name: "a", limit: 0.1234567891, expires_at: "2031-06-30T23:59:60Z" }, ["limit", "expires_at"]],
  ] as const)("is refused for %j", async ([body, paths]) => {
    expect(await faultsOf(await call("POST", "/keys", body))).toEqual(paths);
    expect(asked).toEqual([]);
  });

  test("that the service refuses is reported in the interface's names", async () => {
    gateway.failure = DomainError.invalid(
      ["limit_nano_usd", "member_id", "rate_limit_per_minute", "scopes.1"].map((path) => ({
        path,
        message: "is wrong",
      })),
    );
    expect(await faultsOf(await call("POST", "/keys", { name: "a" }))).toEqual([
      "limit",
      "creator_user_id",
      "rate_limit_per_minute",
      "scopes.1",
    ]);
  });

  test.for(["/keys", `/keys/${hash}/rotate`])(
    "beyond the account's count is a conflict: %s",
    async (path) => {
      gateway.failure = new DomainError(ErrorReason.COUNT_LIMIT_REACHED, "an account has at most 1000 keys");
      const response = await call("POST", path, { name: "a" });
      expect(await response.clone().json()).toEqual({
        error: { code: 409, message: "Conflict", metadata: { reason: "count_limit_reached" } },
      });
      expect(await errorOf(response)).toEqual({ status: 409, reason: "count_limit_reached" });
    },
  );

  test("leaves nothing of itself in the log", async () => {
    await (await call("POST", "/keys", { name: "a" })).json();
    gateway.failure = new TypeError(secret);
    expect(await errorOf(await call("POST", "/keys", { name: "a" }))).toEqual({
      status: 500,
      reason: "internal",
    });
    expect(gateway.server.logged.length).toBeGreaterThan(0);
    expect(JSON.stringify(gateway.server.logged)).not.toContain(secret);
  });
});

test("a limit is kept to the nano-dollar, there and back", async () => {
  await fc.assert(
    fc.asyncProperty(fc.bigInt({ min: 0n, max: 1_000_000n * nanoUsdPerUsd }), async (limitNanoUsd) => {
      asked.length = 0;
      key = accountKey({ limitNanoUsd });
      const limit = usdNumber(limitNanoUsd);
      const answers = [
        await call("POST", "/keys", { name: "a", limit }),
        await call("PATCH", `/keys/${hash}`, { limit }),
      ];
      for (const answer of answers) expect(await answer.json()).toMatchObject({ data: { limit } });
      expect(asked).toMatchObject([{ limitNanoUsd }, { limitNanoUsd }]);
    }),
    { numRuns: 100 },
  );
});

describe("a change", () => {
  test.for([
    [{}, {}],
    [{ name: null, disabled: null, include_byok_in_limit: null }, {}],
    [{ kind: "management", scopes: [], usage: 0 }, {}],
    [
      { name: "b", disabled: false, include_byok_in_limit: false },
      { name: "b", disabled: false, includeByokInLimit: false },
    ],
    [
      { limit: null, limit_reset: null, expires_at: null, rate_limit_per_minute: null },
      { clearLimit: true, limitReset: LimitReset.UNSPECIFIED, clearExpiresAt: true, clearRateLimit: true },
    ],
    [
      { limit: 1, limit_reset: "monthly", expires_at: "2031-01-01T00:00:00Z", rate_limit_per_minute: 9 },
      {
        limitNanoUsd: nanoUsdPerUsd,
        limitReset: LimitReset.MONTHLY,
        expiresAt: timestampFromMs(Date.UTC(2031, 0, 1)),
        rateLimitPerMinute: 9,
      },
    ],
  ] as const)("of %j asks for that alone", async ([body, request]) => {
    expect((await call("PATCH", `/keys/${hash}`, body)).status).toBe(200);
    expect(asked).toEqual([create(UpdateKeyRequestSchema, { hash, ...request })]);
  });

  test.for([
    [{ name: "" }, ["name"]],
    [{ disabled: "yes", limit: "none", limit_reset: "never" }, ["disabled", "limit", "limit_reset"]],
    [{ expires_at: "tomorrow" }, ["expires_at"]],
  ] as const)("is refused for %j", async ([body, paths]) => {
    expect(await faultsOf(await call("PATCH", `/keys/${hash}`, body))).toEqual(paths);
    expect(asked).toEqual([]);
  });
});

test("a key is deleted", async () => {
  const response = await call("DELETE", `/keys/${hash}`);
  expect([response.status, await response.json()]).toEqual([200, { deleted: true }]);
  expect(asked).toMatchObject([{ hash }]);
});

describe("a rotation", () => {
  test.for([
    ["no body", undefined, 0n],
    ["nothing in it", {}, 0n],
    ["null", { grace_s: null }, 0n],
    ["a grace period", { grace_s: 2_592_000 }, 2_592_000n],
  ] as const)("with %s", async ([, body, graceS]) => {
    expect((await call("POST", `/keys/${hash}/rotate`, body)).status).toBe(201);
    expect(asked).toMatchObject([{ hash, graceS }]);
  });

  test("needs no content type when it has no body, and one when it has", async () => {
    const url = `${gateway.server.baseUrl}/api/v1/keys/${hash}/rotate`;
    const headers = { authorization: `Bearer ${testKeys.management}` };
    expect((await fetch(url, { method: "POST", headers })).status).toBe(201);
    expect(await faultsOf(await fetch(url, { method: "POST", headers, body: "{}" }))).toEqual([""]);
  });

  test.for([{ grace_s: -1 }, { grace_s: 0.5 }, { grace_s: "60" }, { grace_s: 2_592_001 }])(
    "is refused for %j",
    async (body) => {
      expect(await faultsOf(await call("POST", `/keys/${hash}/rotate`, body))).toEqual(["grace_s"]);
    },
  );
});

test("a hash is known in any case, and what is none names no key", async () => {
  const paths = ["", "/rotate"] as const;
  const requests = [
    ["GET", paths[0], undefined],
    ["PATCH", paths[0], {}],
    ["DELETE", paths[0], undefined],
    ["POST", paths[1], {}],
  ] as const;
  for (const [method, rest, body] of requests) {
    for (const bad of [hash.slice(1), `${hash}0`, `g${hash.slice(1)}`, "%20", "x"]) {
      const response = await call(method, `/keys/${bad}${rest}`, body);
      expect(await errorOf(response)).toEqual({ status: 404, reason: "record_unknown" });
    }
    expect(asked).toEqual([]);
    await (await call(method, `/keys/${hash.toUpperCase()}${rest}`, body)).text();
    expect(asked.splice(0)).toMatchObject([{ hash }]);
  }
});
