import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, requireRedis, startRedis } from "../support/processes/redis-server.ts";
import { startSpeechFlow } from "../support/processes/speech-flow.ts";
import { openAiEnv, startTestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

const mostInFlight = 8;
const starts = 1_000;
const atOnce = 16;
const limits = { MAX_INFLIGHT_PER_KEY: `${mostInFlight}`, RATE_LIMIT_PER_MINUTE: "1000000" };
const testTimeoutMs = 300_000;

/** Requests that the upstream works on: each until its audio may begin. */
class Work {
  readonly #gates = new Map<string, () => void>();
  most = 0;
  begun = 0;

  begin(input: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gates.set(input, resolve);
    this.begun += 1;
    this.most = Math.max(this.most, this.#gates.size);
    return promise.finally(() => this.#gates.delete(input));
  }

  /** Lets one of them go on. */
  endOne(): void {
    for (const end of [...this.#gates.values()].slice(0, 1)) end();
  }

  get count(): number {
    return this.#gates.size;
  }
}

/** Where clients ask. */
interface Place {
  readonly restUrl: string;
  readonly inferenceKey: string;
}

const options = (work: Work) => ({
  behave: ({ input }: { readonly input: string }) => ({
    kind: "audio" as const,
    totalBytes: 4096,
    beforeHeaders: () => work.begin(input),
  }),
});

/** Starts and leaves, many times; the upstream ends its work one by one. */
async function startAndLeaveOften(place: Place, upstream: OpenAiUpstream, work: Work): Promise<void> {
  let started = 0;
  let refused = 0;
  const client = async () => {
    while (started < starts) {
      started += 1;
      const input = `Call ${started}.`;
      const leaving = new AbortController();
      const answer = fetch(`${place.restUrl}/audio/speech`, {
        method: "POST",
        headers: { authorization: `Bearer ${place.inferenceKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "openai/tts-1", voice: "alloy", response_format: "pcm", input }),
        signal: leaving.signal,
      }).then(
        async (response) => {
          await response.arrayBuffer();
          return response.status;
        },
        () => 0,
      );
      const isIn = () => upstream.requests.some(({ text }) => text.includes(input));
      const status = await Promise.race([answer, waitUntil(isIn, { timeoutMs: 60_000 }).then(() => 0)]);
      if (status === 429) refused += 1;
      leaving.abort();
      if (work.count >= mostInFlight / 2) work.endOne();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  await waitUntil(
    () => {
      work.endOne();
      return work.count === 0;
    },
    { timeoutMs: 60_000 },
  );
  expect(work.most).toBeLessThanOrEqual(mostInFlight);
  expect(work.begun + refused).toBe(starts);
  expect(Math.min(work.begun, refused)).toBeGreaterThan(0);
}

describe.for(["with Redis", "without Redis"] as const)("who starts and leaves 1,000 times, %s,", (how) => {
  let redis: RedisServer | undefined;

  beforeAll(async () => {
    if (how === "with Redis") redis = await startRedis().catch(() => undefined);
  });

  afterAll(async () => {
    await redis?.[Symbol.asyncDispose]();
  });

  const env = () => ({ ...limits, ...(redis === undefined ? {} : { REDIS_URL: redis.url }) });

  test("has no more upstream than a key may: in one process", { timeout: testTimeoutMs }, async (context) => {
    if (how === "with Redis") requireRedis(context);
    const work = new Work();
    const upstream = await startOpenAiUpstream(options(work));
    const stack = await startTestStandalone({ ...env(), ...openAiEnv(upstream) });
    try {
      await startAndLeaveOften({ ...stack, restUrl: `${stack.baseUrl}/api/v1` }, upstream, work);
    } finally {
      await stack.close();
      await upstream.close();
    }
  });

  test("has no more upstream than a key may: as processes", { timeout: testTimeoutMs }, async (context) => {
    if (how === "with Redis") requireRedis(context);
    const work = new Work();
    await using flow = await startSpeechFlow({ env: env(), upstream: options(work) });
    await startAndLeaveOften(flow.stack, flow.upstream, work);
  });
});
