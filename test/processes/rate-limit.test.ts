import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import type { Child } from "../support/processes/child.ts";
import { type GatewayPair, startGatewayPair } from "../support/processes/gateway-pair.ts";
import {
  type RedisServer,
  redisIsInstalled,
  requireRedis,
  startRedis,
} from "../support/processes/redis-server.ts";
import { bytesFrame, finishedFrame, postSpeech, startedFrame } from "../support/services/gateway-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const perMinute = 20;
const maxInFlight = 4;

let redis: RedisServer;
/** They share a Redis, as an operator would run them. */
let pair: GatewayPair;
/** The end of every answer waits for it. */
let gate: Promise<void> | undefined;

beforeAll(async () => {
  if (!redisIsInstalled()) return;
  redis = await startRedis();
  pair = await startGatewayPair({
    synthesize,
    env: {
      REDIS_URL: redis.url,
      RATE_LIMIT_PER_MINUTE: `${perMinute}`,
      MAX_INFLIGHT_PER_KEY: `${maxInFlight}`,
    },
  });
});

beforeEach((context) => {
  requireRedis(context);
  gate = undefined;
});

afterAll(async () => {
  await pair?.[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
});

async function* synthesize() {
  yield startedFrame();
  yield bytesFrame(Buffer.from("sound"));
  await gate;
  yield finishedFrame();
}

/** Asks the gateways by turns. */
function ask(key: string, turn: number): Promise<Response> {
  const baseUrl = pair.baseUrls[turn % 2] ?? "";
  return postSpeech({ baseUrl }, undefined, { headers: { authorization: `Bearer ${key}` } });
}

/** Lets twelve requests of a new key come at the same moment. */
async function askAtOnce() {
  const key = generateApiKey();
  const responses = await Promise.all(Array.from({ length: 12 }, (_, turn) => ask(key, turn)));
  const running = responses.filter(({ status }) => status === 200);
  return { key, running, refused: responses.filter((response) => !running.includes(response)) };
}

/** How many of so many requests, one after the other, got each status. */
async function countStatuses(key: string, requests: number): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (let turn = 0; turn < requests; turn += 1) {
    const response = await ask(key, turn);
    await response.arrayBuffer();
    counts[response.status] = (counts[response.status] ?? 0) + 1;
  }
  return counts;
}

function linesAbout(gateway: Child | undefined): readonly string[] {
  return (gateway?.lines ?? []).filter((line) => line.includes('"redis is '));
}

/**
 * What comes of `run` while no gateway misses Redis; again when one did meanwhile, as a busy machine may make it: the
 * lines about going and coming back alternate.
 */
async function whileRedisIsThere<T>(run: () => Promise<T>): Promise<T> {
  for (;;) {
    await waitUntil(() => pair.gateways.every((gateway) => linesAbout(gateway).length % 2 === 0));
    const before = pair.gateways.flatMap(linesAbout).length;
    const result = await run();
    if (pair.gateways.flatMap(linesAbout).length === before) return result;
  }
}

describe("two gateways with one Redis", () => {
  test("let in together as many requests a minute as one may", async () => {
    const counts = await whileRedisIsThere(() => countStatuses(generateApiKey(), 60));
    expect(counts).toEqual({ 200: perMinute, 429: 60 - perMinute });
  });

  test("let run together as many requests at once as one may", async () => {
    const { promise, resolve: open } = Promise.withResolvers<void>();
    gate = promise;
    const { key, running, refused } = await whileRedisIsThere(askAtOnce);
    expect(running.length).toBe(maxInFlight);
    for (const response of refused) {
      expect([response.status, response.headers.get("retry-after")]).toEqual([429, "1"]);
      await response.arrayBuffer();
    }
    open();
    for (const response of running) expect(await response.text()).toBe("sound");
    await waitUntil(async () => (await countStatuses(key, 2))[200] === 2);
  });

  test("go on when it dies, each with limits of its own, and share it again when it is back", async () => {
    const before = await whileRedisIsThere(async () =>
      pair.gateways.map((gateway) => linesAbout(gateway).length),
    );
    await redis.kill();
    const counts = await countStatuses(generateApiKey(), 60);
    expect(counts).toEqual({ 200: 2 * perMinute, 429: 60 - 2 * perMinute });
    const missed = pair.gateways.map((gateway) => linesAbout(gateway).length);
    expect(missed).toEqual(before.map((count) => count + 1));
    await redis.restart();
    const again = await whileRedisIsThere(() => countStatuses(generateApiKey(), 60));
    expect(again).toEqual({ 200: perMinute, 429: 60 - perMinute });
  });
});
