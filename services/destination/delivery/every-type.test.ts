import type { JsonObject } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { queueEvents } from "../../../test/support/destination-replica.ts";
import {
  startTestDestinationServer,
  type TestDestinationAccount,
  type TestDestinationServer,
} from "../../../test/support/destination-server.ts";
import { lostEvent, usageEvent } from "../../../test/support/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { spansOf, startOtlpReceiver } from "../../../test/upstreams/receivers/otlp-receiver.ts";
import type { Receiver } from "../../../test/upstreams/receivers/receiver.ts";
import { startS3Receiver } from "../../../test/upstreams/receivers/s3-receiver.ts";
import { startWebhookReceiver, webhookSpansOf } from "../../../test/upstreams/receivers/webhook-receiver.ts";
import { destinationTypes } from "../types/registry.ts";

const patient = { timeoutMs: 25_000 };
const secret = "canary0123456789canary0123456789";
const basic = { user: "one", password: secret };
const signingSecret = `whsec_${Buffer.from(secret).toString("base64")}`;
let server: TestDestinationServer;
let account: TestDestinationAccount;
let own: Client<typeof DestinationService>;
let receiver: Receiver | undefined;

beforeEach(async () => {
  server = await startTestDestinationServer({ types: destinationTypes });
  account = await server.newAccount();
  own = server.client(DestinationService, `Bearer ${account.managementKey}`);
});
afterEach(async () => {
  await server.close();
  await receiver?.close();
});

interface Kind {
  start(): Promise<Receiver>;
  /** Settings that lead to it, with a wrong secret where one is named. */
  config(baseUrl: string, wrong?: string): JsonObject;
  /** What a wrong secret comes to; undefined where there is none. */
  readonly refusal?: number;
  /** Ids of the events that it took. */
  taken(from: Receiver): Promise<string[]>;
}

const spanIds = (spans: readonly { attributes: Readonly<Record<string, unknown>> }[]) =>
  spans.map(({ attributes }) => String(attributes["media.generation.id"]));
const takenByOtlp = async (from: Receiver) => spanIds(from.requests.flatMap(spansOf));

const kinds: Readonly<Record<string, Kind>> = {
  webhook: {
    start: () => startWebhookReceiver({ secret: signingSecret }),
    config: (baseUrl, wrong) => ({
      url: `${baseUrl}/hook`,
      signingSecret: wrong === undefined ? signingSecret : `whsec_${Buffer.from(wrong).toString("base64")}`,
    }),
    refusal: 401,
    taken: async (from) => spanIds(from.requests.flatMap(webhookSpansOf)),
  },
  "otel-collector": {
    start: () => startOtlpReceiver(),
    config: (endpoint) => ({ endpoint, headers: { "x-token": secret } }),
    taken: takenByOtlp,
  },
  langfuse: {
    start: () => startOtlpReceiver({ path: "/api/public/otel/v1/traces", basic }),
    config: (baseUrl, wrong = secret) => ({ baseUrl, publicKey: "one", secretKey: wrong }),
    refusal: 401,
    taken: takenByOtlp,
  },
  grafana: {
    start: () => startOtlpReceiver({ path: "/otlp/v1/traces", basic }),
    config: (baseUrl, wrong = secret) => ({ baseUrl, instanceId: "one", apiKey: wrong }),
    refusal: 401,
    taken: takenByOtlp,
  },
  s3: {
    start: startS3Receiver,
    config: (endpoint, wrong = "S3RVER") => ({
      endpoint,
      bucketName: "traces",
      accessKeyId: "S3RVER",
      secretAccessKey: wrong,
    }),
    refusal: 403,
    taken: async (from) =>
      from.requests.flatMap(({ path, text }) => {
        if (!path.includes(".jsonl")) return [];
        const lines = text.split("\n").slice(0, -1);
        return lines.map((line) => String((JSON.parse(line) as JsonObject).generation_id));
      }),
  },
};

test("all types that are built in are tried here", () => {
  expect(Object.keys(kinds)).toEqual([...destinationTypes.keys()]);
});

test.for(Object.entries(kinds))("%s gets what its account did, whatever came of it", async ([type, kind]) => {
  const started = await kind.start();
  receiver = started;
  const made = await own.createDestination({ type, name: type, config: kind.config(started.baseUrl) });
  const { id = "" } = made.destination ?? {};
  expect(JSON.stringify(made.destination?.config)).not.toMatch(/canary0123|secretAccessKey":"S3/);
  expect(await own.testDestination({ id })).toMatchObject({ ok: true, cause: "" });
  expect((await kind.taken(started)).filter((name) => name.startsWith("gen-"))).toEqual([]);
  const { accountId } = account;
  await queueEvents(
    server.database,
    usageEvent({ eventId: "gen-tts-1", accountId }),
    usageEvent({ eventId: "gen-tts-2", accountId, outcome: 2, reason: "provider_failed" }),
    lostEvent({ eventId: "gen-tts-3", accountId }),
  );
  server.destination.start();
  await waitUntil(async () => (await kind.taken(started)).length >= 3, patient);
  expect((await kind.taken(started)).sort()).toEqual(["gen-tts-1", "gen-tts-2", "gen-tts-3"]);
  const log = await waitUntil(async () => {
    const { deliveries } = await own.listDeliveries({ destinationId: id });
    return deliveries.length > 0 ? deliveries : undefined;
  }, patient);
  expect(log).toMatchObject([{ eventCount: 3, attempt: 1, cause: "" }]);
});

test.for(Object.entries(kinds).filter(([, { refusal }]) => refusal !== undefined))(
  "a test of %s tells that the credentials are wrong",
  async ([type, kind]) => {
    receiver = await kind.start();
    const config = kind.config(receiver.baseUrl, "wrong0123456789wrong0123456789wr");
    const { destination } = await own.createDestination({ type, name: type, config });
    const { ok, responseStatus, cause } = await own.testDestination({ id: destination?.id ?? "" });
    expect([ok, responseStatus]).toEqual([false, kind.refusal]);
    expect(cause).toMatch(/credentials|secret|signature|key/);
  },
);
