import { afterAll, beforeAll, expect, test } from "vitest";
import { type GatewayServer, startGatewayServer } from "../../test/support/services/gateway-server.ts";
import { allowedStatuses } from "../http/error-body.ts";

type Paths = Record<string, Record<string, { responses: object }>>;

const destinations = "/observability/destinations";
let gateway: GatewayServer;
let paths: Paths;

beforeAll(async () => {
  gateway = await startGatewayServer();
  const response = await fetch(`${gateway.baseUrl}/api/v1/openapi.json`);
  ({ paths } = (await response.json()) as { paths: Paths });
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

function statusesOf(path: string, method: string): number[] {
  return Object.keys(paths[path]?.[method]?.responses ?? {}).map(Number);
}

test("the document lists the statuses that the operations answer", () => {
  expect(statusesOf("/audio/speech", "post")).toEqual([200, ...allowedStatuses("speech")]);
  expect(statusesOf("/images", "post")).toEqual([200, ...allowedStatuses("images")]);
  expect(statusesOf("/models", "get")).toEqual([200, 400, 401, 500]);
  expect(statusesOf("/models/count", "get")).toEqual([200, 400, 401, 500]);
  expect(statusesOf("/model/{author}/{slug}", "get")).toEqual([200, 401, 404, 500]);
  expect(statusesOf("/models/{author}/{slug}/endpoints", "get")).toEqual([200, 401, 404, 500]);
  expect(statusesOf("/providers", "get")).toEqual([200, 401, 500]);
  expect(statusesOf("/activity", "get")).toEqual([200, 400, 401, 403, 404, 500]);
  expect(statusesOf("/generation", "get")).toEqual([200, 400, 401, 404, 500]);
  expect(statusesOf("/activity/series", "get")).toEqual([200, 400, 401, 403, 500]);
  expect(statusesOf("/generations", "get")).toEqual([200, 400, 401, 403, 500]);
  expect(statusesOf("/keys", "get")).toEqual([200, 400, 401, 403, 500]);
  expect(statusesOf("/keys", "post")).toEqual([201, 400, 401, 403, 409, 500]);
  expect(statusesOf("/keys/{hash}", "get")).toEqual([200, 401, 403, 404, 500]);
  expect(statusesOf("/keys/{hash}", "patch")).toEqual([200, 400, 401, 403, 404, 409, 500]);
  expect(statusesOf("/keys/{hash}", "delete")).toEqual([200, 401, 403, 404, 409, 500]);
  expect(statusesOf("/keys/{hash}/rotate", "post")).toEqual([201, 400, 401, 403, 404, 409, 500]);
  expect(statusesOf("/console/session", "post")).toEqual([201, 400, 404, 409, 429, 500]);
  expect(statusesOf("/key", "get")).toEqual([200, 401, 500]);
  expect(statusesOf("/credits", "get")).toEqual([200, 401, 403, 500]);
  expect(statusesOf("/credits/ledger", "get")).toEqual([200, 400, 401, 403, 500]);
  expect(statusesOf("/byok", "get")).toEqual([200, 400, 401, 403, 500]);
  expect(statusesOf("/byok", "post")).toEqual([201, 400, 401, 403, 409, 500]);
  expect(statusesOf("/byok/{id}", "get")).toEqual([200, 401, 403, 404, 500]);
  expect(statusesOf("/byok/{id}", "patch")).toEqual([200, 400, 401, 403, 404, 500]);
  expect(statusesOf("/byok/{id}", "delete")).toEqual([200, 401, 403, 404, 500]);
  expect(statusesOf(destinations, "get")).toEqual([200, 400, 401, 403, 500]);
  expect(statusesOf(destinations, "post")).toEqual([201, 400, 401, 403, 409, 500]);
  expect(statusesOf(`${destinations}/{id}`, "get")).toEqual([200, 401, 403, 404, 500]);
  expect(statusesOf(`${destinations}/{id}`, "patch")).toEqual([200, 400, 401, 403, 404, 500]);
  expect(statusesOf(`${destinations}/{id}`, "delete")).toEqual([
    200,
    ...allowedStatuses("deleteDestination"),
  ]);
  expect(statusesOf(`${destinations}/{id}/test`, "post")).toEqual([200, 401, 403, 404, 500]);
  expect(statusesOf(`${destinations}/{id}/deliveries`, "get")).toEqual([200, 400, 401, 403, 404, 500]);
  expect(statusesOf(`${destinations}/{id}/resume`, "post")).toEqual([200, 401, 403, 404, 500]);
});
