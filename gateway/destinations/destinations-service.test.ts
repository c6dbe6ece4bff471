import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readServiceKey } from "../../lib/identity/service-key.ts";
import { createTokenSigner } from "../../lib/identity/service-token.ts";
import { startTestReceiver, type TestReceiver } from "../../test/support/services/destination-receiver.ts";
import { queueEvents } from "../../test/support/services/destination-replica.ts";
import {
  startTestDestinationServer,
  type TestDestinationAccount,
  type TestDestinationServer,
} from "../../test/support/services/destination-server.ts";
import {
  errorOf,
  type GatewayServer,
  startGatewayServer,
} from "../../test/support/services/gateway-server.ts";
import { usageEvent } from "../../test/support/services/usage-events.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createGatewayClients } from "../clients.ts";

const collection = "/observability/destinations";
const token = "canary-0123456789-abcdefghij";
const patient = { timeoutMs: 25_000 };
let services: TestDestinationServer;
let gateway: GatewayServer;
let receiver: TestReceiver;
let account: TestDestinationAccount;

beforeAll(async () => {
  services = await startTestDestinationServer({ limits: { pauseAfterMs: 1, pauseAfterFailures: 2 } });
  const key = await readServiceKey(services.account.keyFiles.keyFile("gateway"), "gateway");
  const nowhere = "http://127.0.0.1:9";
  const urls = { account: services.account.url, speech: nowhere, image: nowhere, usage: nowhere };
  gateway = await startGatewayServer({
    clients: createGatewayClients({ ...urls, destination: services.url }, createTokenSigner(key), {
      maxBodyBytes: 1 << 20,
    }),
  });
  receiver = await startTestReceiver();
  services.destination.start();
});

afterAll(async () => {
  await receiver.close();
  await gateway.close({ delayMs: 0, timeoutMs: 0 });
  await services.close();
});

beforeEach(async () => {
  account = await services.newAccount();
  receiver.answer = () => 200;
});

function call(method: string, path: string, body?: object, key = account.managementKey) {
  return fetch(`${gateway.baseUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

type Shown = Record<string, unknown> & { readonly id: string };

async function shown(response: Promise<Response>, status = 200): Promise<Shown> {
  const answer = await response;
  const text = await answer.text();
  expect([answer.status, text.includes("canary")]).toEqual([status, false]);
  return (JSON.parse(text) as { data: Shown }).data;
}

function make(name: string, fields: object = {}) {
  const config = { url: receiver.url(name), token };
  return shown(call("POST", collection, { type: "plain", name, config, ...fields }), 201);
}

async function queue(eventId: string): Promise<void> {
  await queueEvents(services.database, usageEvent({ eventId, accountId: account.accountId }));
  services.destination.deliveries?.wake();
}

describe("a destination", () => {
  test("lives from its making to its deletion", async () => {
    const made = await make("life", { sampling_rate: 1, filter_rules: { groups: [] } });
    const path = `${collection}/${made.id}`;
    expect(made).toMatchObject({
      workspace_id: account.accountId,
      name: "life",
      type: "plain",
      enabled: true,
      filter_rules: { enabled: true, groups: [] },
      regions: ["global"],
      config: { url: receiver.url("life"), method: "POST", token: "can…ghij", headers: {} },
      pause_reason: null,
      last_failure: null,
    });
    expect(await (await call("GET", collection)).json()).toEqual({ data: [made], total_count: 1 });
    expect(await (await call("POST", `${path}/test`)).json()).toEqual({
      data: { ok: true, status: 200, cause: null },
    });
    expect(receiver.requests.at(-1)).toMatchObject({ headers: { authorization: `Bearer ${token}` } });
    await queue("gen-tts-rest-1");
    await waitUntil(() => receiver.taken("life").length === 1, patient);
    const log = await waitUntil(async () => {
      const body = (await (await call("GET", `${path}/deliveries`)).json()) as { total_count: number };
      return body.total_count > 0 ? body : undefined;
    }, patient);
    expect(log).toMatchObject({
      data: [
        { id: receiver.batches("life")[0]?.id, status: "delivered", attempt: 1, event_count: 1, cause: null },
      ],
      total_count: 1,
    });
    const deleted = await call("DELETE", path);
    expect([deleted.status, await deleted.json()]).toEqual([200, { deleted: true }]);
    await queue("gen-tts-rest-2");
    for (const [method, to, body] of [
      ["GET", path],
      ["PATCH", path, {}],
      ["DELETE", path],
      ["POST", `${path}/test`],
      ["GET", `${path}/deliveries`],
      ["POST", `${path}/resume`],
    ] as const) {
      expect(await errorOf(await call(method, to, body))).toEqual({ status: 404, reason: "record_unknown" });
    }
    expect(receiver.taken("life")).toEqual(["gen-tts-rest-1/1"]);
  });

  test("takes changes, and what it shows of secrets back", async () => {
    const made = await make("change", { filter_rules: { groups: [] } });
    const path = `${collection}/${made.id}`;
    const changed = await shown(
      call("PATCH", path, {
        name: "new",
        filter_rules: null,
        config: { ...(made.config as object), method: "PUT" },
      }),
    );
    expect(changed).toMatchObject({
      name: "new",
      filter_rules: null,
      config: { method: "PUT", token: "can…ghij" },
    });
    await call("POST", `${path}/test`);
    expect(receiver.requests.at(-1)).toMatchObject({
      method: "PUT",
      headers: { authorization: `Bearer ${token}` },
    });
  });

  test("that was paused says why, and goes on when it is resumed", async () => {
    const { id } = await make("pause");
    receiver.answer = () => 503;
    await queue("gen-tts-paused-1");
    const path = `${collection}/${id}`;
    const paused = await waitUntil(async () => {
      const data = await shown(call("GET", path));
      return data.pause_reason === null ? undefined : data;
    }, patient);
    expect(paused).toMatchObject({
      enabled: true,
      pause_reason: "sustained_failure",
      last_failure: "the receiver says 503",
    });
    receiver.answer = () => 200;
    expect(await shown(call("POST", `${path}/resume`))).toMatchObject({ pause_reason: null });
    services.destination.deliveries?.wake();
    await waitUntil(() => receiver.taken("pause").length === 1, patient);
    await waitUntil(async () => (await shown(call("GET", path))).last_failure === null, patient);
  });

  test("is there for management keys of its account alone", async () => {
    const { id } = await make("own");
    const stranger = await services.newAccount();
    for (const [key, status] of [
      [stranger.managementKey, 404],
      [account.inferenceKey, 404],
      ["sk-nobody-knows-this-key-at-all-anywhere", 401],
    ] as const) {
      const response = await call("DELETE", `${collection}/${id}`, undefined, key);
      expect((await errorOf(response)).status).toBe(status);
    }
    expect((await call("GET", `${collection}/${id}`)).status).toBe(200);
  });

  test("names faults as the interface does", async () => {
    const rule = { field: "total_cost", operator: "contains", value: 1 };
    const body = {
      type: "plain",
      name: "a",
      config: { url: "http://10.0.0.1/" },
      filter_rules: { groups: [{ rules: [rule] }] },
    };
    const response = await call("POST", collection, body);
    const { error } = (await response.json()) as { error: { metadata: { issues: { path: string }[] } } };
    expect([response.status, error.metadata.issues.map(({ path }) => path).sort()]).toEqual([
      400,
      ["config.url", "filter_rules.groups.0.rules.0.operator"],
    ]);
  });
});
