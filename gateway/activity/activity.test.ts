import { beforeEach, describe, expect, test } from "vitest";
import type { ActivityItem } from "../../gen/media/usage/v1/usage_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { activityItem, usageRoutes } from "../../test/fakes/fake-usage.ts";
import {
  errorOf,
  type GatewayServer,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";
import { PlayedGateway } from "../../test/support/services/played-gateway.ts";

const hash = "0123456789abcdef".repeat(4);

let items: ActivityItem[];

const gateway = new PlayedGateway((answer) => ({
  usageHandlers: { listActivity: answer(() => ({ items })) },
}));
const { asked } = gateway;

beforeEach(() => {
  items = [activityItem()];
});

function get(query = "", { baseUrl }: Pick<GatewayServer, "baseUrl"> = gateway.server): Promise<Response> {
  const headers = { authorization: `Bearer ${testKeys.management}` };
  return fetch(`${baseUrl}/api/v1/activity${query}`, { headers });
}

describe("the activity", () => {
  test("is shown in the names and units of the interface", async () => {
    const response = await get();
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
    expect(await response.json()).toEqual({
      data: [
        {
          date: "2030-01-31",
          endpoint_id: "0f9d1b6e-3a52-4c7b-9c52-5a6f0d6f7a10",
          model: "acme/voice",
          model_permaslug: "acme/voice-2030-01-01",
          provider_name: "Acme",
          requests: 3,
          prompt_tokens: 20,
          completion_tokens: 5,
          reasoning_tokens: 2,
          cached_tokens: 4,
          usage: 0.001234567,
          byok_usage_inference: 1e-9,
        },
      ],
    });
    expect(asked).toMatchObject([{ date: "", apiKeyHash: "", memberId: "" }]);
  });

  test("of nothing is an empty list, and what is 0 is shown as 0", async () => {
    const zero = {
      requests: 0n,
      promptTokens: 0n,
      completionTokens: 0n,
      reasoningTokens: 0n,
      cachedTokens: 0n,
    };
    items = [activityItem({ ...zero, usageNanoUsd: 0n, byokUsageInferenceNanoUsd: 0n })];
    const numbers = {
      requests: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      reasoning_tokens: 0,
      cached_tokens: 0,
    };
    expect(await (await get()).json()).toMatchObject({
      data: [{ ...numbers, usage: 0, byok_usage_inference: 0 }],
    });
    items = [];
    expect(await (await get()).json()).toEqual({ data: [] });
  });

  test("is asked for by day, key and member", async () => {
    const query = `?date=2030-01-31&api_key_hash=${hash.toUpperCase()}&user_id=a-member&other=1&group_by=workspace`;
    expect((await get(query)).status).toBe(200);
    expect(asked).toMatchObject([{ date: "2030-01-31", apiKeyHash: hash, memberId: "a-member" }]);
  });

  test.for([
    ["?date=2030-1-31", ["date"]],
    ["?date=31.01.2030", ["date"]],
    ["?date=today", ["date"]],
    ["?date=", ["date"]],
    ["?date=2030-01-31%0a", ["date"]],
    ["?date=2030-01-30&date=2030-01-31", ["date"]],
    [`?api_key_hash=${hash.slice(1)}`, ["api_key_hash"]],
    [`?api_key_hash=${hash}0`, ["api_key_hash"]],
    [`?api_key_hash=g${hash.slice(1)}`, ["api_key_hash"]],
    ["?api_key_hash=", ["api_key_hash"]],
    ["?user_id=", ["user_id"]],
    ["?user_id=a&user_id=b", ["user_id"]],
    ["?date=x&api_key_hash=y&user_id=", ["date", "api_key_hash", "user_id"]],
  ] as const)("is refused for %s", async ([query, paths]) => {
    const response = await get(query);
    const { error } = (await response.clone().json()) as {
      error: { message: string; metadata: { issues: { path: string }[] } };
    };
    expect(error.message).toBe("Invalid request parameters");
    expect(error.metadata.issues.map(({ path }) => path)).toEqual(paths);
    expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
    expect(asked).toEqual([]);
  });

  test("that the service refuses is reported in the interface's names", async () => {
    gateway.failure = DomainError.invalid([
      { path: "date", message: "lies outside of the window" },
      { path: "member_id", message: "is for organizations only" },
    ]);
    const response = await get("?date=1999-01-01&user_id=a");
    expect([response.status, await response.json()]).toMatchObject([
      400,
      {
        error: {
          metadata: {
            issues: [
              { path: "date", message: "lies outside of the window" },
              { path: "user_id", message: "is for organizations only" },
            ],
          },
        },
      },
    ]);
  });
});

test("31 days of 600 endpoints come whole and in order, from a service behind a socket", async () => {
  const days = Array.from({ length: 31 }, (_, day) => `2030-01-${String(31 - day).padStart(2, "0")}`);
  const endpoints = Array.from({ length: 600 }, (_, index) => `endpoint-${index}`);
  items = days.flatMap((date) => endpoints.map((endpointId) => activityItem({ date, endpointId })));
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [UsageService],
    routes: usageRoutes({ listActivity: () => ({ items }) }),
    limits: { readMaxBytes: 1 << 20, writeMaxBytes: 16 << 20 },
    readiness: async () => [],
    log: silentLog,
  });
  const limits = { readMaxBytes: 16 << 20, writeMaxBytes: 1 << 20 };
  const transport = createRemoteTransport({ baseUrl: `http://127.0.0.1:${server.port}`, limits });
  await using large = await startGatewayServer({
    clients: { usage: createRpcClient(UsageService, transport) },
  });
  const { data } = (await (await get("", large)).json()) as { data: Record<string, unknown>[] };
  expect(data.map(({ date, endpoint_id }) => `${date} ${endpoint_id}`)).toEqual(
    items.map(({ date, endpointId }) => `${date} ${endpointId}`),
  );
  await server.drain({ delayMs: 0, timeoutMs: 0 });
});
