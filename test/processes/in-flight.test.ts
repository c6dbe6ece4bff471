import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { createIdentityInterceptor } from "../../lib/identity/identity-interceptor.ts";
import { ensureKeyFiles } from "../../lib/identity/key-files.ts";
import { openServiceKeySet } from "../../lib/identity/service-key-set.ts";
import { createTokenVerifier } from "../../lib/identity/service-token.ts";
import { createLimitInterceptor } from "../../lib/rate-limit/limit-interceptor.ts";
import type { RequestLimiter } from "../../lib/rate-limit/limiter.ts";
import { openRequestLimiter, rateLimitSpec } from "../../lib/rate-limit/open-request-limiter.ts";
import { callLifeOf } from "../../lib/rpc/call-life.ts";
import { serverInterceptor } from "../../lib/rpc/interceptors.ts";
import { type RpcServer, startRpcServer } from "../../lib/rpc/server.ts";
import { readConfig } from "../../lib/runtime/config.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { type Child, startChild } from "../support/processes/child.ts";
import {
  type RedisServer,
  redisIsInstalled,
  requireRedis,
  startRedis,
} from "../support/processes/redis-server.ts";
import { bytesFrame, postSpeech, startedFrame } from "../support/services/gateway-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const maxInFlight = 4;
const leaves = 120;

/** Work that goes on at the service after its callers left; each ends when the test says so. */
const running = new Set<() => void>();
let most = 0;

beforeEach(() => {
  most = 0;
});

/** Two gateways that are processes of their own, and the speech service in this one. */
interface Flow extends AsyncDisposable {
  readonly baseUrls: readonly string[];
  readonly limiter: RequestLimiter;
}

async function startFlow(redis: RedisServer | undefined): Promise<Flow> {
  const folder = await mkdtemp(join(tmpdir(), "in-flight-"));
  const files = await ensureKeyFiles(folder);
  const limits = { RATE_LIMIT_PER_MINUTE: 1_000_000, MAX_INFLIGHT_PER_KEY: maxInFlight };
  const config = { ...readConfig(rateLimitSpec, {}), ...limits, REDIS_URL: redis?.url };
  const limiter = await openRequestLimiter(config, silentLog);
  const keys = await openServiceKeySet({ path: files.jwksFile, log: silentLog });
  const services = await startServices(limiter, createTokenVerifier(keys));
  const url = `http://127.0.0.1:${services.port}`;
  const env = {
    HOST: "127.0.0.1",
    PORT: "0",
    ACCOUNT_URL: url,
    SPEECH_URL: url,
    SERVICE_KEY_FILE: files.keyFile("gateway"),
    DRAIN_DELAY_MS: "0",
    METRICS_PORT: "off",
    RATE_LIMIT_PER_MINUTE: `${limits.RATE_LIMIT_PER_MINUTE}`,
    MAX_INFLIGHT_PER_KEY: `${maxInFlight}`,
    ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
  };
  const gateways: Child[] = [1, 2].map(() => startChild("gateway/main.ts", { env }));
  const ports = await Promise.all(gateways.map((gateway) => gateway.listeningPort("rest")));
  return {
    baseUrls: ports.map((port) => `http://127.0.0.1:${port}`),
    limiter,
    async [Symbol.asyncDispose]() {
      for (const gateway of gateways) await gateway.kill();
      await services.drain({ delayMs: 0, timeoutMs: 0 });
      await limiter.close();
      await rm(folder, { recursive: true });
    },
  };
}

function startServices(
  limiter: RequestLimiter,
  verifyToken: ReturnType<typeof createTokenVerifier>,
): Promise<RpcServer> {
  const inference = { accountId: "a", keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH] };
  const authenticateKey = () => Promise.reject(new Error("nobody calls directly"));
  const interceptors = [
    serverInterceptor(silentLog),
    createIdentityInterceptor({ audience: "speech", authenticateKey, verifyToken }),
    createLimitInterceptor({ limiter, methods: [SpeechService.method.synthesize] }),
  ];
  return startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [AccountInternalService, SpeechService],
    readiness: async () => [],
    log: silentLog,
    routes(router) {
      const authenticate = ({ keyHash }: { keyHash: string }) => ({
        principal: create(PrincipalSchema, { ...inference, keyHash, rateBucket: keyHash }),
      });
      router.service(
        AccountInternalService,
        { authenticate },
        { interceptors: [serverInterceptor(silentLog)] },
      );
      router.service(SpeechService, { synthesize }, { interceptors });
    },
  });
}

/** Speaks for ever; what it began goes on when its caller is gone, and nothing begins for one who is gone by then. */
async function* synthesize(_request: unknown, { values, signal }: HandlerContext) {
  signal.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => {
    running.delete(end);
    resolve();
  };
  running.add(end);
  most = Math.max(most, running.size);
  callLifeOf(values).keepUntil(promise);
  yield startedFrame();
  yield bytesFrame(Buffer.from("sound"));
  await Promise.race([
    promise,
    new Promise((left) => signal.addEventListener("abort", left, { once: true })),
  ]);
}

/** Asks, leaves as soon as there is an answer, and gives its status. */
async function startAndLeave(baseUrl: string, key: string): Promise<number> {
  const leaving = new AbortController();
  const { signal } = leaving;
  const headers = { authorization: `Bearer ${key}` };
  const { status } = await postSpeech({ baseUrl }, undefined, { headers, signal });
  leaving.abort();
  return status;
}

async function startAndLeaveOften(flow: Flow): Promise<void> {
  const key = generateApiKey();
  const statuses: number[] = [];
  const client = async (client: number) => {
    for (let turn = client; turn < leaves; turn += 8) {
      statuses.push(await startAndLeave(flow.baseUrls[turn % 2] ?? "", key));
      // Now and then one of those that go on ends.
      if (turn % 5 === 0) for (const end of [...running].slice(0, 1)) end();
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => client(index)));
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect(most).toBe(maxInFlight);
  await waitUntil(async () => {
    for (const end of running) end();
    return (await startAndLeave(flow.baseUrls[0] ?? "", key)) === 200;
  });
  for (const end of running) end();
}

describe("those who start and leave have no more upstream than they may have in flight", () => {
  test("where processes share a Redis", async (context) => {
    requireRedis(context);
    await using redis = await startRedis();
    await using flow = await startFlow(redis);
    await startAndLeaveOften(flow);
    // Each once, while gateways and service hold it.
    const keys = async () => (await redis.command("KEYS", "media:rate:*:leases")) as string[];
    await waitUntil(async () => (await keys()).every((key) => key.includes("probe")));
  });

  test("where each process counts alone", async () => {
    await using flow = await startFlow(undefined);
    await startAndLeaveOften(flow);
  });
});

describe("gateway and service together", () => {
  let redis: RedisServer;
  let flow: Flow;

  beforeAll(async () => {
    if (!redisIsInstalled()) return;
    redis = await startRedis();
    flow = await startFlow(redis);
  });

  afterAll(async () => {
    await flow?.[Symbol.asyncDispose]();
    await redis?.[Symbol.asyncDispose]();
  });

  test("let in as many as one of them would", async (context) => {
    requireRedis(context);
    const headers = { authorization: `Bearer ${generateApiKey()}` };
    const ask = (turn: number) =>
      postSpeech({ baseUrl: flow.baseUrls[turn % 2] ?? "" }, undefined, { headers });
    const responses = await Promise.all(Array.from({ length: 12 }, (_, turn) => ask(turn)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(maxInFlight);
    for (const end of running) end();
    for (const response of responses) await response.arrayBuffer().catch(() => undefined);
  });
});
