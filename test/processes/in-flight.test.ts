import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { createIdentityInterceptor } from "../../lib/identity/identity-interceptor.ts";
import { createLimitInterceptor } from "../../lib/rate-limit/limit-interceptor.ts";
import { openRequestLimiter, rateLimitSpec } from "../../lib/rate-limit/open-request-limiter.ts";
import { callLifeOf } from "../../lib/rpc/call-life.ts";
import { readConfig } from "../../lib/runtime/config.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { type GatewayPair, startGatewayPair } from "../support/processes/gateway-pair.ts";
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

/** Two gateways, and a speech service that counts as they do. */
async function startFlow(redis: RedisServer | undefined): Promise<GatewayPair> {
  await using stack = new AsyncDisposableStack();
  const limits = { RATE_LIMIT_PER_MINUTE: 1_000_000, MAX_INFLIGHT_PER_KEY: maxInFlight };
  const config = { ...readConfig(rateLimitSpec, {}), ...limits, REDIS_URL: redis?.url };
  const limiter = await openRequestLimiter(config, silentLog);
  stack.defer(() => limiter.close());
  const authenticateKey = () => Promise.reject(new Error("nobody calls directly"));
  const pair = stack.use(
    await startGatewayPair({
      synthesize,
      interceptors: (verifyToken) => [
        createIdentityInterceptor({ audience: "speech", authenticateKey, verifyToken }),
        createLimitInterceptor({ limiter, methods: [SpeechService.method.synthesize] }),
      ],
      env: {
        RATE_LIMIT_PER_MINUTE: `${limits.RATE_LIMIT_PER_MINUTE}`,
        MAX_INFLIGHT_PER_KEY: `${maxInFlight}`,
        ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
      },
    }),
  );
  const kept = stack.move();
  return { ...pair, [Symbol.asyncDispose]: () => kept.disposeAsync() };
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

async function startAndLeaveOften(flow: GatewayPair): Promise<void> {
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
  let flow: GatewayPair;

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
