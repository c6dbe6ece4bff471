import { toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import {
  CreateDestinationRequestSchema,
  DeliveryStatus,
  type Destination,
  PauseReason,
  UpdateDestinationRequestSchema,
} from "../../gen/media/destination/v1/destination_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { deliveryRecord, destinationRecord } from "../../test/support/services/destination-routes.ts";
import { errorOf, testKeys } from "../../test/support/services/gateway-server.ts";
import { faultsOf, PlayedGateway } from "../../test/support/services/played-gateway.ts";

const id = "0c9a4b7e-5f1d-4d0c-9a57-2f1c3a8e6b11";
const collection = "/observability/destinations";
const path = `${collection}/${id}`;

let record: Destination;
let testTimeoutMs: number | undefined;

const one = () => ({ destination: record });
const gateway = new PlayedGateway((answer) => ({
  destinationHandlers: {
    listDestinations: answer(() => ({ destinations: [record], totalCount: 12n })),
    createDestination: answer(one),
    getDestination: answer(one),
    updateDestination: answer(one),
    deleteDestination: answer(() => ({})),
    testDestination(request, context) {
      testTimeoutMs = context.timeoutMs();
      return answer(() => ({ ok: false, cause: "the name is not known" }))(request);
    },
    listDeliveries: answer(() => ({ deliveries: [deliveryRecord()], totalCount: 3n })),
    resumeDestination: answer(one),
  },
}));
const { asked, call } = gateway;

/** A request of the service. */
function requestOf(rpc: string, fields: object = {}) {
  return { $typeName: `media.destination.v1.${rpc}Request`, ...fields };
}

beforeEach(() => {
  record = destinationRecord();
});

/** The destination of the fixture as every answer shows it. */
const shown = {
  id,
  workspace_id: "account-1",
  name: "Ours",
  type: "webhook",
  enabled: true,
  privacy_mode: true,
  sampling_rate: 0.25,
  api_key_hashes: ["ab".repeat(32)],
  filter_rules: {
    enabled: true,
    groups: [
      {
        logic: "or",
        rules: [
          { field: "model", operator: "equals", value: "a" },
          { field: "total_cost", operator: "gt", value: 0.5 },
          { field: "user_id", operator: "exists" },
        ],
      },
    ],
  },
  broadcast_generation_cost: true,
  broadcast_generation_cost_allocation: false,
  broadcast_generation_identity: true,
  broadcast_generation_request_context: true,
  regions: ["global"],
  config: { url: "https://receiver.test/", headers: { "x-key": "…" } },
  created_at: "2030-01-31T12:00:00.000Z",
  updated_at: "2030-01-31T12:00:00.001Z",
  pause_reason: "sustained_failure",
  last_failure: "the name is not known",
};

const least = { type: "webhook", name: "Ours", config: { url: "https://receiver.test/" } };

describe("a destination", () => {
  test.for([
    ["GET", path, undefined, 200],
    ["PATCH", path, {}, 200],
    ["POST", collection, least, 201],
    ["POST", `${path}/resume`, undefined, 200],
  ] as const)("is shown the same by %s %s", async ([method, to, body, status]) => {
    const response = await call(method, to, body);
    expect([response.status, await response.json()]).toEqual([status, { data: shown }]);
  });

  test("with nothing set shows null and false", async () => {
    record = destinationRecord({
      name: "",
      apiKeyHashes: undefined,
      filterRules: undefined,
      config: undefined,
      pauseReason: PauseReason.UNSPECIFIED,
      lastFailure: "",
    });
    expect(await (await call("GET", path)).json()).toEqual({
      data: {
        ...shown,
        name: null,
        api_key_hashes: null,
        filter_rules: null,
        config: {},
        pause_reason: null,
        last_failure: null,
      },
    });
  });

  test("is listed a page at a time", async () => {
    const response = await call("GET", `${collection}?offset=3&limit=7&workspace_id=x`);
    expect(await response.json()).toEqual({ data: [shown], total_count: 12 });
    await call("GET", collection);
    expect(asked).toMatchObject([
      requestOf("ListDestinations", { offset: 3, limit: 7 }),
      requestOf("ListDestinations", { offset: 0 }),
    ]);
    expect(asked[1]).not.toHaveProperty("limit");
    expect(await faultsOf(await call("GET", `${collection}?offset=-1&limit=a`))).toEqual(["limit", "offset"]);
  });

  test("reports what a test of it came to", async () => {
    const response = await call("POST", `${path}/test`);
    expect([response.status, await response.json()]).toEqual([
      200,
      { data: { ok: false, status: null, cause: "the name is not known" } },
    ]);
    expect(asked).toMatchObject([requestOf("TestDestination", { id })]);
    // The service gives a receiver ten seconds.
    expect(testTimeoutMs).toBeGreaterThan(12_000);
  });

  test("reports what was delivered to it", async () => {
    const response = await call("GET", `${path}/deliveries?offset=1&limit=2`);
    expect(await response.json()).toEqual({
      data: [
        {
          id: "5d2f6a0b-8c3e-4f7a-b1d9-0e4c7f2a9b33",
          status: "retrying",
          attempt: 3,
          event_count: 7,
          response_status: 503,
          latency_ms: 42,
          cause: "the receiver is not available now",
          attempted_at: "2030-01-31T12:00:00.000Z",
        },
      ],
      total_count: 3,
    });
    expect(asked).toMatchObject([requestOf("ListDeliveries", { destinationId: id, offset: 1, limit: 2 })]);
    expect(DeliveryStatus.RETRYING).toBe(deliveryRecord().status);
  });

  test.for([
    ["POST", `${path}/test`],
    ["POST", `${path}/resume`],
  ])("%s %s takes no body, and minds none", async ([method = "", to = ""]) => {
    expect((await call(method, to, "nonsense")).status).toBe(200);
  });
});

describe("a body", () => {
  const whole = {
    ...least,
    enabled: false,
    privacy_mode: true,
    sampling_rate: 0.5,
    api_key_hashes: ["ab".repeat(32)],
    filter_rules: {
      groups: [
        { rules: [{ field: "model", operator: "equals", value: "a" }] },
        {
          logic: "or",
          rules: [
            { field: "total_cost", operator: "gt", value: 0.5 },
            { field: "user_id", operator: "exists", value: null },
          ],
        },
      ],
    },
    broadcast_generation_cost: true,
    broadcast_generation_identity: true,
    broadcast_generation_request_context: true,
  };
  const sent = {
    name: "Ours",
    config: least.config,
    enabled: false,
    privacyMode: true,
    samplingRate: 0.5,
    apiKeyHashes: { values: ["ab".repeat(32)] },
    filterRules: {
      enabled: true,
      groups: [
        { rules: [{ field: "model", operator: "equals", value: "a" }] },
        {
          logic: "FILTER_LOGIC_OR",
          rules: [
            { field: "total_cost", operator: "gt", value: 0.5 },
            { field: "user_id", operator: "exists" },
          ],
        },
      ],
    },
    broadcastGenerationCost: true,
    broadcastGenerationIdentity: true,
    broadcastGenerationRequestContext: true,
  };

  test("is asked of the service whole, and what is unknown ignored", async () => {
    await call("POST", collection, { ...whole, regions: ["europe"], workspace_id: "x", more: 1 });
    expect(asked).toMatchObject([requestOf("CreateDestination")]);
    expect(toJson(CreateDestinationRequestSchema, asked[0] as never)).toEqual({ type: "webhook", ...sent });
  });

  test("may leave out whatever has a default; null counts as absent", async () => {
    const nulls = { enabled: null, sampling_rate: null, api_key_hashes: null, filter_rules: null };
    await call("POST", collection, { ...least, ...nulls });
    expect(toJson(CreateDestinationRequestSchema, asked[0] as never)).toEqual(least);
  });

  test("changes what it names, and clears by null", async () => {
    const { type, ...change } = whole;
    await call("PATCH", path, change);
    await call("PATCH", path, { name: null, api_key_hashes: null, filter_rules: null });
    await call("PATCH", path, { config: { token: null, headers: { a: "…" } } });
    await call("PATCH", path, {});
    expect(asked.map((request) => toJson(UpdateDestinationRequestSchema, request as never))).toEqual([
      { id, ...sent },
      { id, clearApiKeyHashes: true, clearFilterRules: true },
      { id, config: { token: null, headers: { a: "…" } } },
      { id },
    ]);
  });

  const rules = (...list: object[]) => ({ filter_rules: { groups: [{ rules: list }] } });
  const nested = (levels: number): object => (levels === 1 ? {} : { x: nested(levels - 1) });
  test.for<[string, object, string[]]>([
    ["nothing", { type: undefined, name: undefined, config: undefined }, ["type", "name", "config"]],
    ["wrong types", { type: 1, name: 2, config: [] }, ["type", "name", "config"]],
    ["an empty name", { name: "" }, ["name"]],
    ["too small a share", { sampling_rate: 0.00001 }, ["sampling_rate"]],
    ["a share above 1", { sampling_rate: 1.5 }, ["sampling_rate"]],
    ["no hashes", { api_key_hashes: [] }, ["api_key_hashes"]],
    ["hashes that are none", { api_key_hashes: "x" }, ["api_key_hashes"]],
    ["rules without groups", { filter_rules: {} }, ["filter_rules.groups"]],
    ["no rules", rules(), ["filter_rules.groups.0.rules"]],
    [
      "a rule without anything",
      rules({}),
      ["field", "operator"].map((n) => `filter_rules.groups.0.rules.0.${n}`),
    ],
    [
      "a value of another kind",
      rules({ field: "model", operator: "equals", value: {} }),
      ["filter_rules.groups.0.rules.0.value"],
    ],
    [
      "words that no rule has",
      rules({ field: "output", operator: "like", value: "x" }),
      ["field", "operator"].map((n) => `filter_rules.groups.0.rules.0.${n}`),
    ],
    ["what is no key's hash", { api_key_hashes: ["ab".repeat(32), "x"] }, ["api_key_hashes.1"]],
    [
      "another logic",
      { filter_rules: { groups: [{ logic: "xor", rules: [] }] } },
      ["logic", "rules"].map((n) => `filter_rules.groups.0.${n}`),
    ],
    ["settings that are too deep", { config: nested(21) }, ["config"]],
    ["settings that are too long", { config: { a: "x".repeat(65_536) } }, ["config"]],
  ])("of %s is refused", async ([, wrong, paths]) => {
    const found = await faultsOf(await call("POST", collection, { ...least, ...wrong }));
    expect(found.sort()).toEqual([...paths].sort());
    expect(asked).toEqual([]);
  });

  test("whatever it holds, the answer is one of the contract's and never 500", async () => {
    const members = [...Object.keys(whole), "headers"];
    const anyFields = fc.dictionary(fc.constantFrom(...members), fc.jsonValue({ maxDepth: 5 }));
    await fc.assert(
      fc.asyncProperty(anyFields, fc.boolean(), async (fields, isNew) => {
        const response = isNew
          ? await call("POST", collection, { ...least, ...fields })
          : await call("PATCH", path, fields);
        expect([isNew ? 201 : 200, 400]).toContain(response.status);
        await response.arrayBuffer();
      }),
      { numRuns: 150 },
    );
    expect(
      (await call("POST", collection, `{"config":${"[".repeat(50_000)}${"]".repeat(50_000)}}`)).status,
    ).toBe(400);
    const deep = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`;
    expect((await call("PATCH", path, `{"config":${deep}}`)).status).toBe(400);
  });
});

describe("who may", () => {
  const others: [string, string, unknown?][] = [
    ["GET", collection],
    ["POST", collection, least],
    ["GET", path],
    ["PATCH", path, {}],
    ["POST", `${path}/test`],
    ["GET", `${path}/deliveries`],
    ["POST", `${path}/resume`],
  ];

  test.for(others)("%s %s is for management keys", async ([method, to, body]) => {
    expect(await errorOf(await call(method, to, body, testKeys.speech))).toEqual({
      status: 403,
      reason: "management_key_required",
    });
    expect(await errorOf(await call(method, to, body, testKeys.unknown))).toEqual({
      status: 401,
      reason: "key_unknown",
    });
    gateway.failure = new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away");
    expect(await errorOf(await call(method, to, body))).toEqual({
      status: 500,
      reason: "service_unavailable",
    });
  });

  test.for(others.slice(2))("%s %s of what is not there is 404", async ([method, to, body]) => {
    for (const wrong of ["x", "%27", `${id}0`]) {
      const response = await call(method, to.replace(id, wrong), body);
      expect(await errorOf(response)).toEqual({ status: 404, reason: "record_unknown" });
    }
    expect(asked).toEqual([]);
    gateway.failure = new DomainError(ErrorReason.RECORD_UNKNOWN, "no such destination");
    expect(await errorOf(await call(method, to, body))).toEqual({ status: 404, reason: "record_unknown" });
  });

  test("make more than five of a type is told", async () => {
    gateway.failure = new DomainError(ErrorReason.COUNT_LIMIT_REACHED, "five");
    const response = await call("POST", collection, least);
    expect(await response.clone().json()).toMatchObject({ error: { message: "Conflict" } });
    expect(await errorOf(response)).toEqual({ status: 409, reason: "count_limit_reached" });
  });
});

describe("DELETE", () => {
  const notFound = {
    error: { code: 404, message: "Resource not found", metadata: { reason: "record_unknown" } },
  };

  test("answers that it is deleted", async () => {
    const response = await call("DELETE", path);
    expect([response.status, await response.json()]).toEqual([200, { deleted: true }]);
    expect(asked).toMatchObject([requestOf("DeleteDestination", { id })]);
    expect(
      (await call("DELETE", path.toUpperCase().replace(collection.toUpperCase(), collection))).status,
    ).toBe(200);
  });

  test.for([testKeys.speech, testKeys.images])("hides from %s that it exists", async (key) => {
    const response = await call("DELETE", path, undefined, key);
    expect([response.status, await response.json()]).toEqual([404, notFound]);
    expect(asked).toEqual([]);
  });

  test.for(["x", "1", `${id}x`, id.slice(1), "%00"])("of the malformed id %s is 404", async (wrong) => {
    const response = await call("DELETE", `${collection}/${wrong}`);
    expect([response.status, await response.json()]).toEqual([404, notFound]);
    expect(asked).toEqual([]);
  });

  test.for([
    [ErrorReason.RECORD_UNKNOWN, 404],
    [ErrorReason.INVALID_BODY, 404],
    [ErrorReason.MANAGEMENT_KEY_REQUIRED, 404],
    [ErrorReason.KEY_EXPIRED, 401],
    [ErrorReason.SERVICE_UNAVAILABLE, 500],
    [ErrorReason.TIMED_OUT, 500],
    [ErrorReason.RATE_LIMITED, 500],
    [ErrorReason.INTERNAL, 500],
  ] as const)("answers the service's %i with %i", async ([reason, status]) => {
    gateway.failure = new DomainError(reason, "secret words");
    const response = await call("DELETE", path);
    const text = await response.text();
    expect(response.status).toBe(status);
    expect(text).not.toContain("secret words");
    if (status === 404) expect(JSON.parse(text)).toEqual(notFound);
  });

  test("is 401 without a good key", async () => {
    for (const key of [testKeys.unknown, testKeys.expired, testKeys.disabled]) {
      const response = await call("DELETE", path, undefined, key);
      expect(await response.json()).toMatchObject({
        error: { code: 401, message: "Missing Authentication header" },
      });
    }
    expect(await errorOf(await call("DELETE", path, undefined, testKeys.down))).toEqual({
      status: 500,
      reason: "service_unavailable",
    });
  });
});
