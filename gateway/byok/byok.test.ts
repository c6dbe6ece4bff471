import { beforeEach, describe, expect, test } from "vitest";
import type { ProviderKey } from "../../gen/media/account/v1/provider_key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { providerKey } from "../../test/fakes/fake-account.ts";
import { errorOf } from "../../test/support/services/gateway-server.ts";
import { faultsOf, PlayedGateway } from "../../test/support/services/played-gateway.ts";

const secret = "the-secret-of-a-provider";
const id = "b0a3c1de-7d51-4c36-9f0c-7b6f7c0b5a10";

let stored: ProviderKey[];

const gateway = new PlayedGateway((answer) => ({
  accountHandlers: {
    providerKeys: {
      listProviderKeys: answer(() => ({ providerKeys: stored })),
      createProviderKey: answer(() => ({ providerKey: providerKey() })),
      getProviderKey: answer(() => ({ providerKey: providerKey() })),
      updateProviderKey: answer(() => ({ providerKey: providerKey({ name: "", disabled: true }) })),
      deleteProviderKey: answer(() => ({})),
    },
  },
}));
const { asked, call } = gateway;

beforeEach(() => {
  stored = [];
});

const shown = {
  id,
  provider: "acme",
  label: "sk-…wxyz",
  name: "Team",
  disabled: false,
  created_at: "2030-01-31T12:00:00.000Z",
  workspace_id: "account-1",
  sort_order: 0,
  is_fallback: false,
  is_required: false,
  is_byok_only: false,
  allowed_models: null,
  allowed_user_ids: null,
  allowed_api_key_hashes: null,
  declared_zdr: null,
  declared_region: null,
};

describe("provider keys", () => {
  test("are listed in the service's order", async () => {
    expect(await (await call("GET", "/byok")).json()).toEqual({ data: [], total_count: 0 });
    stored = [providerKey(), providerKey({ providerSlug: "other", name: "", disabled: true })];
    const other = { ...shown, provider: "other", name: null, disabled: true };
    const ask = async (query: string) => (await call("GET", `/byok${query}`)).json();
    expect(await ask("")).toEqual({ data: [shown, other], total_count: 2 });
    expect(await ask("?limit=1")).toEqual({ data: [shown], total_count: 2 });
    expect(await ask("?limit=1&offset=1")).toEqual({ data: [other], total_count: 2 });
    expect(await ask("?provider=other&workspace_id=x")).toEqual({ data: [other], total_count: 1 });
    expect(await errorOf(await call("GET", "/byok?limit=0"))).toEqual({
      status: 400,
      reason: "invalid_body",
    });
  });

  test("are listed all", async () => {
    stored = Array.from({ length: 2000 }, (_, index) => providerKey({ providerSlug: `provider-${index}` }));
    const { data } = (await (await call("GET", "/byok")).json()) as { data: { provider: string }[] };
    expect(data.map(({ provider }) => provider)).toEqual(stored.map(({ providerSlug }) => providerSlug));
  });

  test.for([
    [
      { provider: "acme", key: secret },
      { providerSlug: "acme", secret, name: "" },
    ],
    [
      { provider: "acme", key: secret, name: null },
      { providerSlug: "acme", secret, name: "" },
    ],
    [
      { provider: "acme", key: secret, name: "Team", disabled: true, allowed_models: null },
      { providerSlug: "acme", secret, name: "Team", disabled: true },
    ],
    [
      { provider: "acme", key: secret, is_fallback: false, declared_region: "global", declared_zdr: null },
      { providerSlug: "acme", secret, disabled: false },
    ],
  ] as const)("are stored by %j", async ([body, request]) => {
    const response = await call("POST", "/byok", body);
    expect([response.status, await response.json()]).toEqual([201, { data: shown }]);
    expect(asked).toMatchObject([request]);
  });

  test.for([
    [{}, ["provider", "key"]],
    [{ provider: "", key: "" }, ["provider", "key"]],
    [{ provider: null, key: secret }, ["provider"]],
    [{ provider: "acme", key: "x".repeat(4097) }, ["key"]],
    [{ provider: "acme", key: secret, name: "x".repeat(257) }, ["name"]],
    [{ provider: 1, key: [secret], name: 2 }, ["provider", "key", "name"]],
  ] as const)("are refused for %j", async ([body, paths]) => {
    const response = await call("POST", "/byok", body);
    const text = await response.clone().text();
    expect(text).not.toContain(secret);
    expect(JSON.parse(text).error.metadata.issues.map(({ path }: { path: string }) => path)).toEqual(paths);
    expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
    expect(asked).toEqual([]);
  });

  test("that the service refuses are reported in the interface's names", async () => {
    gateway.failure = DomainError.invalid([
      { path: "provider_slug", message: "takes no keys" },
      { path: "secret", message: "must be visible ASCII characters" },
    ]);
    const response = await call("POST", "/byok", { provider: "none", key: secret });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { metadata: { issues: [{ path: "provider" }, { path: "key" }] } } },
    ]);
  });

  test("are one for each provider", async () => {
    gateway.failure = new DomainError(ErrorReason.COUNT_LIMIT_REACHED, "one is stored");
    const response = await call("POST", "/byok", { provider: "acme", key: secret });
    expect(await errorOf(response)).toEqual({ status: 409, reason: "count_limit_reached" });
  });

  test("are forgotten by their id", async () => {
    const response = await call("DELETE", `/byok/${id}`);
    expect([response.status, await response.json()]).toEqual([200, { deleted: true }]);
    expect(asked).toMatchObject([{ id }]);
    gateway.failure = new DomainError(ErrorReason.RECORD_UNKNOWN, "no such record");
    expect(await errorOf(await call("DELETE", `/byok/${id}`))).toEqual({
      status: 404,
      reason: "record_unknown",
    });
  });

  test("are shown and changed by their id", async () => {
    const got = await call("GET", `/byok/${id}`);
    expect([got.status, await got.json()]).toEqual([200, { data: shown }]);
    for (const [body, request] of [
      [{}, { id }],
      [
        { name: null, disabled: true },
        { id, name: "", disabled: true },
      ],
      [
        { name: "Team", key: secret, disabled: null, is_required: false },
        { id, name: "Team", secret },
      ],
    ]) {
      const response = await call("PATCH", `/byok/${id}`, body);
      expect(await response.json()).toEqual({ data: { ...shown, name: null, disabled: true } });
      const { $typeName: _, ...sent } = asked.at(-1) as Record<string, unknown>;
      expect(sent).toEqual(request);
    }
  });

  test.for([
    [{ is_fallback: true, is_required: true }, ["is_fallback", "is_required"]],
    [{ is_byok_only: "yes", allowed_models: ["a/b"] }, ["is_byok_only", "allowed_models"]],
    [{ allowed_user_ids: [], allowed_api_key_hashes: [] }, ["allowed_user_ids", "allowed_api_key_hashes"]],
    [{ declared_zdr: true, declared_region: "europe" }, ["declared_zdr", "declared_region"]],
  ] as const)("are not used otherwise than was asked: %j", async ([wish, paths]) => {
    for (const [method, path, body] of [
      ["POST", "/byok", { provider: "acme", key: secret, ...wish }],
      ["PATCH", `/byok/${id}`, wish],
    ] as const) {
      const response = await call(method, path, body);
      expect(await faultsOf(response.clone())).toEqual(paths);
      expect(await errorOf(response)).toEqual({ status: 400, reason: "unsupported_parameter" });
    }
    expect(asked).toEqual([]);
  });

  test.for(["x", id.slice(1), `${id}0`, "%00"])("have no such id: %s", async (bad) => {
    for (const [method, body] of [["GET"], ["PATCH", {}], ["DELETE"]] as const) {
      expect(await errorOf(await call(method, `/byok/${bad}`, body))).toEqual({
        status: 404,
        reason: "record_unknown",
      });
    }
    expect(asked).toEqual([]);
  });

  test("leave nothing of themselves in the log", async () => {
    gateway.failure = new TypeError(secret);
    const response = await call("POST", "/byok", { provider: "acme", key: secret });
    expect(await errorOf(response)).toEqual({ status: 500, reason: "internal" });
    expect(gateway.server.logged.length).toBeGreaterThan(0);
    expect(JSON.stringify(gateway.server.logged)).not.toContain(secret);
  });
});
