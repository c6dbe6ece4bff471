import type { LookupFunction } from "node:net";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FilterLogic, PauseReason } from "../../gen/media/destination/v1/destination_pb.ts";
import { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { startTestReceiver, type TestReceiver } from "../../test/support/services/destination-receiver.ts";
import {
  startTestDestinationServer,
  type TestDestinationAccount,
  type TestDestinationServer,
} from "../../test/support/services/destination-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

const addresses: Readonly<Record<string, readonly string[]>> = {
  "public.test": ["93.184.215.14"],
  "private.test": ["10.1.2.3"],
  "both.test": ["93.184.215.14", "10.1.2.3"],
  "metadata.test": ["169.254.169.254"],
};
const lookup: LookupFunction = (name, _options, callback) => {
  const found = addresses[name];
  if (name === "slow.test") return;
  if (found === undefined) callback(Object.assign(new Error("no"), { code: "ENOTFOUND" }), []);
  else
    callback(
      null,
      found.map((address) => ({ address, family: 4 })),
    );
};

const secret = "canary-0123456789-abcdefghij";
const logLines: string[] = [];
let server: TestDestinationServer;
let receiver: TestReceiver;
let account: TestDestinationAccount;
let own: Client<typeof DestinationService>;

beforeAll(async () => {
  const destination = { write: (line: string) => logLines.push(line) };
  const log = createLog({ name: "destination", level: "trace", destination });
  server = await startTestDestinationServer({ log, lookup });
  receiver = await startTestReceiver();
});
afterAll(async () => {
  await receiver.close();
  await server.close();
});
beforeEach(async () => {
  account = await server.newAccount();
  own = server.client(DestinationService, `Bearer ${account.managementKey}`);
  receiver.answer = () => 200;
});

const least = () => ({ type: "plain", name: "Ours", config: { url: receiver.url() } as JsonObject });

async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => DomainError.from(thrown),
  );
  return { reason: error?.reason, paths: error?.issues.map(({ path }) => path) ?? [] };
}

async function make(fields: object = {}) {
  const { destination } = await own.createDestination({ ...least(), ...fields });
  if (destination === undefined) throw new Error("an answer without a destination");
  return destination;
}

describe("a destination", () => {
  test("is stored with its defaults, its settings whole", async () => {
    const made = await make();
    expect(made).toMatchObject({
      accountId: account.accountId,
      name: "Ours",
      type: "plain",
      enabled: true,
      privacyMode: false,
      samplingRate: 1,
      broadcastGenerationCost: false,
      broadcastGenerationIdentity: false,
      broadcastGenerationRequestContext: false,
      config: { url: receiver.url(), method: "POST", headers: {} },
      pauseReason: PauseReason.UNSPECIFIED,
      lastFailure: "",
    });
    expect([made.apiKeyHashes, made.filterRules]).toEqual([undefined, undefined]);
    expect(made.createdAt).toEqual(made.updatedAt);
    expect((await own.getDestination({ id: made.id })).destination).toEqual(made);
    const upper = await own.getDestination({ id: made.id.toUpperCase() });
    expect(upper.destination).toEqual(made);
  });

  test("keeps everything that is said of it", async () => {
    const filterRules = {
      enabled: false,
      groups: [
        {
          logic: FilterLogic.OR,
          rules: [
            { field: "model", operator: "contains", value: { kind: { case: "stringValue", value: "v" } } },
            { field: "total_cost", operator: "gte", value: { kind: { case: "numberValue", value: 0.5 } } },
            { field: "user_id", operator: "exists" },
          ],
        },
      ],
    } as const;
    const made = await make({
      enabled: false,
      privacyMode: true,
      samplingRate: 0.25,
      apiKeyHashes: { values: ["AB".repeat(32), "ab".repeat(32)] },
      filterRules,
      broadcastGenerationCost: true,
      broadcastGenerationIdentity: true,
      broadcastGenerationRequestContext: true,
    });
    expect(made).toMatchObject({
      enabled: false,
      privacyMode: true,
      samplingRate: 0.25,
      apiKeyHashes: { values: ["ab".repeat(32)] },
      filterRules,
      broadcastGenerationCost: true,
      broadcastGenerationIdentity: true,
      broadcastGenerationRequestContext: true,
    });
    expect((await own.getDestination({ id: made.id })).destination).toEqual(made);
  });

  test("stands in the list of its account, a page at a time, oldest first", async () => {
    const made = [
      await make({ name: "a" }),
      await make({ name: "b" }),
      await make({ name: "c", type: "other" }),
    ];
    const list = async (page: object) => {
      const { destinations, totalCount } = await own.listDestinations(page);
      return { names: destinations.map(({ name }) => name), totalCount };
    };
    expect(await list({})).toEqual({ names: ["a", "b", "c"], totalCount: 3n });
    expect(await list({ offset: 1, limit: 1 })).toEqual({ names: ["b"], totalCount: 3n });
    expect(await list({ offset: 5 })).toEqual({ names: [], totalCount: 3n });
    expect((await own.listDestinations({})).destinations).toEqual(made);
    for (const page of [{ limit: 0 }, { limit: 101 }, { offset: -1 }]) {
      expect(await refusal(own.listDestinations(page))).toEqual({
        reason: ErrorReason.INVALID_BODY,
        paths: Object.keys(page),
      });
    }
  });

  test("is one of five of its type, also when they are made at once", async () => {
    const calls = Array.from({ length: 12 }, (_, index) =>
      refusal(own.createDestination({ ...least(), name: `${index}` })),
    );
    const reasons = (await Promise.all(calls)).map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === undefined)).toHaveLength(5);
    expect(reasons.filter((reason) => reason === ErrorReason.COUNT_LIMIT_REACHED)).toHaveLength(7);
    await make({ type: "other" });
    const [first] = (await own.listDestinations({})).destinations;
    await own.deleteDestination({ id: first?.id ?? "" });
    await make();
    const stranger = await server.newAccount();
    const theirs = server.client(DestinationService, `Bearer ${stranger.managementKey}`);
    expect((await refusal(theirs.createDestination(least()))).reason).toBeUndefined();
  });

  test("that was deleted is not found ever after", async () => {
    const { id } = await make();
    await own.deleteDestination({ id });
    for (const call of [
      () => own.getDestination({ id }),
      () => own.updateDestination({ id, name: "x" }),
      () => own.deleteDestination({ id }),
      () => own.testDestination({ id }),
      () => own.listDeliveries({ destinationId: id }),
      () => own.resumeDestination({ id }),
    ]) {
      expect((await refusal(call())).reason).toBe(ErrorReason.RECORD_UNKNOWN);
    }
    expect((await own.listDestinations({})).totalCount).toBe(0n);
  });

  test("of another account, or whose id is none, is not found", async () => {
    const { id } = await make();
    const stranger = await server.newAccount();
    const theirs = server.client(DestinationService, `Bearer ${stranger.managementKey}`);
    for (const [client, wrongId] of [
      [theirs, id],
      [own, "00000000-0000-4000-8000-000000000000"],
      [own, "x"],
      [own, ""],
      [own, `${id}'`],
    ] as const) {
      for (const call of [
        () => client.getDestination({ id: wrongId }),
        () => client.updateDestination({ id: wrongId, name: "x" }),
        () => client.deleteDestination({ id: wrongId }),
        () => client.testDestination({ id: wrongId }),
        () => client.listDeliveries({ destinationId: wrongId }),
        () => client.resumeDestination({ id: wrongId }),
      ]) {
        expect((await refusal(call())).reason).toBe(ErrorReason.RECORD_UNKNOWN);
      }
    }
    expect((await theirs.listDestinations({})).destinations).toEqual([]);
    expect((await own.getDestination({ id })).destination?.name).toBe("Ours");
  });

  test("is for management keys", async () => {
    const inference = server.client(DestinationService, `Bearer ${account.inferenceKey}`);
    const nobody = server.client(DestinationService);
    expect((await refusal(inference.listDestinations({}))).reason).toBe(ErrorReason.MANAGEMENT_KEY_REQUIRED);
    expect((await refusal(nobody.listDestinations({}))).reason).toBe(ErrorReason.KEY_MISSING);
  });
});

describe("a change", () => {
  test("leaves alone what it does not name", async () => {
    const made = await make({ apiKeyHashes: { values: ["ab".repeat(32)] }, filterRules: { groups: [] } });
    const { destination } = await own.updateDestination({ id: made.id, name: "Theirs" });
    const { updatedAt, ...rest } = destination ?? made;
    expect(rest).toEqual({ ...made, name: "Theirs", updatedAt: undefined });
    expect(updatedAt).not.toEqual(made.updatedAt);
  });

  test("changes everything it names, and clears what it is told to", async () => {
    const made = await make({ apiKeyHashes: { values: ["ab".repeat(32)] }, filterRules: { groups: [] } });
    const change = {
      id: made.id,
      enabled: false,
      privacyMode: true,
      samplingRate: 0.5,
      clearApiKeyHashes: true,
      clearFilterRules: true,
      broadcastGenerationCost: true,
      broadcastGenerationIdentity: true,
      broadcastGenerationRequestContext: true,
    };
    const { destination } = await own.updateDestination(change);
    const { clearApiKeyHashes, clearFilterRules, ...changed } = change;
    expect(destination).toMatchObject(changed);
    expect([destination?.apiKeyHashes, destination?.filterRules]).toEqual([undefined, undefined]);
  });

  test("that comes with others at once is not lost", async () => {
    const { id } = await make();
    await Promise.all([
      own.updateDestination({ id, name: "b" }),
      own.updateDestination({ id, config: { token: secret } }),
      own.updateDestination({ id, config: { method: "PUT" } }),
      own.updateDestination({ id, samplingRate: 0.5 }),
    ]);
    expect((await own.getDestination({ id })).destination).toMatchObject({
      name: "b",
      samplingRate: 0.5,
      config: { method: "PUT", token: "can…ghij" },
    });
  });

  test("is checked like a beginning", async () => {
    const { id } = await make();
    const change = {
      id,
      name: "",
      samplingRate: 2,
      apiKeyHashes: { values: [] },
      config: { url: "ftp://x" },
    };
    expect((await refusal(own.updateDestination(change))).paths).toEqual([
      "api_key_hashes.values",
      "name",
      "sampling_rate",
      "config.url",
    ]);
    const { paths } = await refusal(own.updateDestination({ id, config: { url: "http://10.0.0.1/" } }));
    expect(paths).toEqual(["config.url"]);
  });
});

describe("secrets", () => {
  const headers = { "X-Auth": `Basic ${secret}`, "x-short": "tiny" };

  test("are masked whenever they are shown, and stay when they come back masked", async () => {
    const made = await make({ config: { url: receiver.url("a"), token: secret, headers } });
    const masked = { token: "can…ghij", headers: { "X-Auth": "Bas…ghij", "x-short": "…" } };
    expect(made.config).toMatchObject(masked);
    const config = { ...made.config, url: receiver.url("b") };
    const { destination } = await own.updateDestination({ id: made.id, config });
    expect(destination?.config).toEqual({ ...masked, url: receiver.url("b"), method: "POST" });
    await own.testDestination({ id: made.id });
    expect(receiver.requests.at(-1)).toMatchObject({
      path: "/b",
      headers: { authorization: `Bearer ${secret}`, "x-auth": `Basic ${secret}`, "x-short": "tiny" },
    });
    expect(
      JSON.stringify((await own.listDestinations({})).destinations.map((one) => one.config)),
    ).not.toContain(secret);
  });

  test("are replaced by new ones, and taken away by null", async () => {
    const { id } = await make({ config: { url: receiver.url(), token: secret, headers } });
    await own.updateDestination({
      id,
      config: { token: "fresh", headers: { "X-Short": "…", "x-new": "1" } },
    });
    await own.testDestination({ id });
    expect(receiver.requests.at(-1)?.headers).toMatchObject({
      authorization: "Bearer fresh",
      "x-short": "tiny",
      "x-new": "1",
    });
    const { destination } = await own.updateDestination({ id, config: { token: null } });
    expect(destination?.config).not.toHaveProperty("token");
  });

  test("in the query of an address are masked as well", async () => {
    const made = await make({ config: { url: receiver.url(`a?key=${secret}&v=2`) } });
    const shown = receiver.url("a?key=can…ghij&v=…");
    expect(made.config).toMatchObject({ url: shown });
    await own.updateDestination({ id: made.id, config: { url: shown.replace("/a?", "/b?"), method: "PUT" } });
    await own.testDestination({ id: made.id });
    expect(receiver.requests.at(-1)).toMatchObject({ method: "PUT", path: `/b?key=${secret}&v=2` });
  });

  test("that are masked and not known are refused", async () => {
    const config = { url: receiver.url("?a=…"), token: "abc…wxyz", headers: { "x-a": "…" } };
    expect((await refusal(own.createDestination({ ...least(), config }))).paths).toEqual([
      "config.url",
      "config.token",
      "config.headers.x-a",
    ]);
    const { id } = await make();
    expect((await refusal(own.updateDestination({ id, config }))).paths).toEqual([
      "config.url",
      "config.token",
      "config.headers.x-a",
    ]);
  });

  test("stand sealed in the store, bound to their account and record, and in no log", async () => {
    const { id } = await make({ config: { url: receiver.url(), token: secret } });
    const other = await make({ config: { url: receiver.url(), token: "another" } });
    receiver.answer = () => ({ status: 401, body: `no ${secret}` });
    expect(await own.testDestination({ id })).toMatchObject({ ok: false, responseStatus: 401 });
    const { rows } = await sql<{ row: string }>`SELECT destination::text AS row FROM destination`.execute(
      server.database,
    );
    expect(rows.map(({ row }) => row).join()).not.toContain(Buffer.from("canary").toString("hex"));
    await sql`UPDATE destination SET sealed = (SELECT sealed FROM destination WHERE id = ${id})
      WHERE id = ${other.id}`.execute(server.database);
    expect((await own.getDestination({ id: other.id })).destination).toMatchObject({
      config: {},
      lastFailure: expect.stringContaining("enter them anew"),
    });
    expect(await own.testDestination({ id: other.id })).toMatchObject({ ok: false, responseStatus: 0 });
    const all = { url: receiver.url(), token: "fresh" };
    const { destination } = await own.updateDestination({ id: other.id, config: all });
    expect(destination).toMatchObject({ config: { token: "…" }, lastFailure: "" });
    expect(logLines.length).toBeGreaterThan(0);
    expect(logLines.join("\n")).not.toContain("canary");
  });
});

describe("an address", () => {
  test.for([
    "http://10.0.0.1/",
    "http://192.168.1.1:8080/x",
    "http://169.254.169.254/latest/meta-data",
    "http://[::1]/",
    "http://[fd00::1]/",
    "http://0x0a.0.0.1/",
  ])("%s is refused at once", async (url) => {
    const { reason, paths } = await refusal(own.createDestination({ ...least(), config: { url } }));
    expect({ reason, paths }).toEqual({ reason: ErrorReason.INVALID_BODY, paths: ["config.url"] });
  });

  test.for([
    "https://public.test/hook",
    "https://nobody-knows.test/hook",
    "https://slow.test/hook",
    "http://8.8.8.8:9/",
    "http://127.0.0.1:1/",
    // What a name leads to is nobody's business who may not go there.
    "http://private.test/",
    "https://both.test/hook",
    "http://metadata.test/",
  ])("%s is taken, whether anybody listens or not", async (url) => {
    expect((await make({ config: { url } })).config).toMatchObject({ url });
  });
});

test.for<[string, object, string[]]>([
  ["no type", { type: "" }, ["type"]],
  ["a type nobody knows", { type: "Plain" }, ["type"]],
  ["no name", { name: "" }, ["name"]],
  ["a long name", { name: "a".repeat(257) }, ["name"]],
  ["a name of two lines", { name: "a\nb" }, ["name"]],
  ["no settings", { config: {} }, ["config.url"]],
  [
    "settings that its type refuses",
    { config: { url: "ftp://x", method: "GET" } },
    ["config.url", "config.method"],
  ],
  ["no share", { samplingRate: 0 }, ["sampling_rate"]],
  ["too small a share", { samplingRate: 0.00009 }, ["sampling_rate"]],
  ["more than all", { samplingRate: 1.1 }, ["sampling_rate"]],
  ["a share that is no number", { samplingRate: Number.NaN }, ["sampling_rate"]],
  ["no keys", { apiKeyHashes: { values: [] } }, ["api_key_hashes.values"]],
  [
    "too many keys",
    { apiKeyHashes: { values: Array(101).fill("ab".repeat(32)) } },
    ["api_key_hashes.values"],
  ],
  ["what is no key", { apiKeyHashes: { values: ["ab".repeat(32), "x"] } }, ["api_key_hashes.values.1"]],
  [
    "rules on what events don't carry",
    { filterRules: { groups: [{ rules: [{ field: "input", operator: "contains" }] }] } },
    ["filter_rules.groups.0.rules.0.field"],
  ],
])("%s is refused", async ([, wrong, paths]) => {
  const call = own.createDestination({ ...least(), ...wrong });
  expect(await refusal(call)).toEqual({ reason: ErrorReason.INVALID_BODY, paths });
});

describe("a test of the connection", () => {
  const test_ = async (answer: TestReceiver["answer"], url = receiver.url()) => {
    receiver.answer = answer;
    const { id } = await make({ config: { url } });
    const { ok, responseStatus, cause } = await own.testDestination({ id });
    await own.deleteDestination({ id });
    return { ok, responseStatus, cause };
  };

  test("says what came of it", async () => {
    expect(await test_(() => 204)).toEqual({ ok: true, responseStatus: 204, cause: "" });
    expect(receiver.requests.at(-1)?.body).toEqual({ test: true });
    expect(await test_(() => 401)).toEqual({
      ok: false,
      responseStatus: 401,
      cause: "the receiver says 401",
    });
    expect(await test_(() => "cut")).toMatchObject({ ok: false, responseStatus: 0 });
    expect(await test_(() => 200, "http://127.0.0.1:1/")).toEqual({
      ok: false,
      responseStatus: 0,
      cause: "the connection was refused",
    });
    for (const url of ["http://nobody-knows.test/", "http://private.test/", "http://metadata.test:1/"]) {
      expect(await test_(() => 200, url)).toEqual({
        ok: false,
        responseStatus: 0,
        cause: "the name is not known, or its address may not be called",
      });
    }
  });

  test("is refused while too many are under way", async () => {
    const { id } = await make();
    receiver.answer = () => "hang";
    const before = receiver.requests.length;
    const ended = new AbortController();
    const hanging = Array.from({ length: 64 }, () =>
      refusal(own.testDestination({ id }, { signal: ended.signal })),
    );
    await waitUntil(() => receiver.requests.length === before + hanging.length);
    const { reason } = await refusal(own.testDestination({ id }));
    expect(reason).toBe(ErrorReason.SERVICE_UNAVAILABLE);
    ended.abort();
    await Promise.all(hanging);
    receiver.answer = () => 200;
    await waitUntil(async () => (await refusal(own.testDestination({ id }))).reason === undefined);
  });

  test("does not go to an address that became private since", async () => {
    const { id } = await make({ config: { url: "http://nobody-knows.test/" } });
    Object.assign(addresses, { "nobody-knows.test": ["10.0.0.1"] });
    try {
      expect(await own.testDestination({ id })).toMatchObject({
        ok: false,
        cause: "the name is not known, or its address may not be called",
      });
    } finally {
      Object.assign(addresses, { "nobody-knows.test": undefined });
    }
  });
});
