import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, type TestContext, test } from "vitest";
import { startChild } from "../../commands/stack/child.ts";
import { processNames } from "../../commands/stack/processes.ts";
import { redisIsInstalled } from "../../commands/stack/redis-process.ts";
import type { Replica } from "../../commands/stack/replicas.ts";
import { type Stack, startStack } from "../../commands/stack/start.ts";
import { GenerationEventSchema, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { keyFilesIn } from "../../lib/identity/key-files.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, kafkaUnavailable, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { type OwnerProcess, spawnOwner } from "../support/postgres/owner-process.ts";
import { temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { requireRedis } from "../support/processes/redis-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";
import { SteadyLoad } from "./steady-load.ts";

const inferenceKey = generateApiKey();
const managementKey = generateApiKey();
const patience = { timeoutMs: 90_000, intervalMs: 100 };
const startTimeoutMs = 240_000;
const testTimeoutMs = 240_000;
/** On either side of the restarts, so that the load is under way. */
const someAnswers = 20;

let dataDir: string;
let database: OwnerProcess;
let broker: KafkaBroker;
let upstream: OpenAiUpstream;
let stack: Stack;
const lines: string[] = [];
const notes: string[] = [];

beforeAll(async () => {
  if (kafkaUnavailable() !== undefined || !redisIsInstalled()) return;
  dataDir = await temporaryDirectory();
  database = spawnOwner({ dataDir: await temporaryDirectory(), durable: false, temporary: true });
  [broker, upstream] = await Promise.all([startKafkaBroker(), startOpenAiUpstream()]);
  stack = await startStack({
    dataDir,
    replicas: 2,
    ports: { account: 0, usage: 0, destination: 0, speech: 0, image: 0, gateway: 0 },
    env: {
      DATABASE_URL: await database.url,
      KAFKA_BROKERS: broker.brokers.join(","),
      KAFKA_PARTITIONS: "6",
      OPENAI_API_KEY: "test-key",
      OPENAI_BASE_URL: upstream.baseUrl,
      BOOTSTRAP_INFERENCE_KEY: inferenceKey,
      BOOTSTRAP_MANAGEMENT_KEY: managementKey,
      BOOTSTRAP_CREDIT_USD: "100000",
      RATE_LIMIT_PER_MINUTE: "1000000",
      UNSEEN_GRACE_MS: "2000",
    },
    log: silentLog,
    signal: new AbortController().signal,
    onLine: (name, line) => void lines.push(`${name} ${line}`),
    onNote: (note) => void notes.push(note),
  });
}, startTimeoutMs);

afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
  await broker?.stop();
  await database?.end();
}, startTimeoutMs);

beforeEach((context: TestContext) => {
  needKafka(context);
  requireRedis(context);
});

describe("a rolling restart of all processes under load", () => {
  test("fails no request and loses nothing", { timeout: testTimeoutMs }, async () => {
    const load = startLoad("whole");
    await waitUntil(() => load.answered >= someAnswers, patience);
    await restartAll();
    await finish(load);
  });

  test("fails no request and loses nothing while Kafka is away", { timeout: testTimeoutMs }, async () => {
    await broker.kill();
    const load = startLoad("away");
    await waitUntil(() => load.answered >= someAnswers, patience);
    await restartAll();
    const answeredBefore = load.answered;
    await waitUntil(() => load.answered >= answeredBefore + someAnswers, patience);
    await broker.restart();
    await finish(load);
  });
});

test("a rolling restart loses no generation whose caller has left", { timeout: testTimeoutMs }, async () => {
  const tags = Array.from({ length: 12 }, (_, index) => `left-${index + 1}`);
  const leaving = new AbortController();
  const calls = tags.map((tag, index) => startAndKeep(tag, index % 2 === 0, leaving.signal));
  const arrived = (tag: string) => upstream.requests.some(({ text }) => text.includes(`Tag ${tag}.`));
  await waitUntil(() => tags.every(arrived), patience);
  leaving.abort();
  expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(tags.map(() => "rejected"));
  await restartAll();
  await waitUntil(async () => (await unsettledHolds()) === 0, patience);
  const events = async () => (await recordedEvents()).filter(({ sessionId }) => tags.includes(sessionId));
  await waitUntil(async () => (await events()).length >= tags.length, patience);
  const ended = (await events()).map(({ sessionId, outcome, cancelled, costNanoUsd }) => [
    ...[sessionId, outcome, cancelled],
    costNanoUsd > 0n,
  ]);
  expect(ended.sort()).toEqual(tags.map((tag) => [tag, Outcome.SUCCEEDED, true, true]).sort());
  expect(await reconcile()).toEqual({ code: 0, differences: [] });
});

/** One replica of each, and the requests that it may have been at work on. */
const killed = [
  ["speech-1", /^\/(audio\/speech|models)$/],
  ["image-2", /^\/(images|images\/models|models)$/],
  ["account-1", /^/],
  ["usage-2", /^\/activity$/],
  ["destination-1", /^\/observability/],
  ["gateway-2", /^/],
] as const;

test("a replica that is killed under load fails only what was inside it, and comes back", {
  timeout: testTimeoutMs,
}, async () => {
  const load = startLoad("killed");
  for (const [name, paths] of killed) {
    const more = load.answered + someAnswers;
    await waitUntil(() => load.answered >= more, patience);
    const { child } = find(name);
    const [before, killedMs] = [load.faults.length, performance.now()];
    process.kill(child.pid, "SIGKILL");
    await child.exited;
    const goneMs = performance.now();
    await waitUntil(() => notes.some((note) => note.startsWith(`${name} serves again `)), patience);
    expect(notes).toContain(`${name} ended by itself (SIGKILL); starting it again in 0.5 s`);
    expect(find(name).child.pid).not.toBe(child.pid);
    const enough = load.answered + someAnswers;
    await waitUntil(() => load.answered >= enough, patience);
    const outside = load.faults
      .slice(before)
      .filter(
        ({ path, startedMs, endedMs }) => startedMs > goneMs || endedMs < killedMs || !paths.test(path),
      );
    expect(outside, name).toEqual([]);
  }
  await load.stop();
});

function find(name: string): Replica {
  const found = stack.replicas.all.find((replica) => replica.name === name);
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
}

/** Asks for something that takes the upstream some seconds; rejects when its caller leaves. */
async function startAndKeep(tag: string, isSpeech: boolean, signal: AbortSignal): Promise<void> {
  const marked = isSpeech ? "[[audio=40960 chunk=1024 interval=150]]" : "[[delay=6000]]";
  const text = `Tag ${tag}. ${marked}`;
  // What is priced by tokens goes on until the end of its answer.
  const body = isSpeech
    ? { model: "openai/gpt-4o-mini-tts", voice: "alloy", response_format: "pcm", input: text }
    : { model: "openai/gpt-image-1.5", quality: "low", prompt: text };
  const response = await fetch(`${stack.urls.gateway}/api/v1/${isSpeech ? "audio/speech" : "images"}`, {
    method: "POST",
    headers: { authorization: `Bearer ${inferenceKey}`, "content-type": "application/json" },
    body: JSON.stringify({ ...body, session_id: tag }),
    signal,
  });
  await response.arrayBuffer();
}

function startLoad(name: string): SteadyLoad {
  return new SteadyLoad({ restUrl: `${stack.urls.gateway}/api/v1`, inferenceKey, managementKey, name });
}

/** One replica of each service, and then the other: each in turn, and different services at the same time. */
async function restartAll(): Promise<void> {
  for (const replica of [1, 2]) {
    const names = processNames.map((service) => `${service}-${replica}`);
    const codes = await Promise.all(names.map((name) => stack.replicas.restart(name)));
    expect(Object.fromEntries(names.map((name, index) => [name, codes[index]]))).toEqual(
      Object.fromEntries(names.map((name) => [name, 0])),
    );
  }
}

/** Ends a load, and compares what clients got, what the upstream saw and what was recorded. */
async function finish(load: SteadyLoad): Promise<void> {
  const answeredBefore = load.answered;
  await waitUntil(() => load.answered >= answeredBefore + someAnswers, patience);
  await load.stop();
  expect(load.faults).toEqual([]);
  // A process that stops has said so before it refuses anybody.
  expect(stack.replicas.refused).toBe(0);
  const tags = load.answers.map(({ tag }) => tag);
  const ofLoad = (tag: string) => tag.startsWith(`${load.name}-`);
  const visits = upstream.requests.flatMap(({ text }) => /Tag (\w+-\d+)\./.exec(text)?.[1] ?? []);
  expect(difference(visits.filter(ofLoad), tags)).toEqual([]);
  await waitUntil(async () => (await unsettledHolds()) === 0, patience);
  await waitUntil(async () => (await recordedTags()).filter(ofLoad).length >= tags.length, patience);
  expect(difference((await recordedTags()).filter(ofLoad), tags)).toEqual([]);
  expect(await reconcile()).toEqual({ code: 0, differences: [] });
}

/** What two lists don't have in common, each as often as one has it more than the other. */
function difference(found: readonly string[], expected: readonly string[]): string[] {
  const count = (list: readonly string[], sign: number) => list.map((tag) => [tag, sign] as const);
  const counts = Map.groupBy([...count(found, 1), ...count(expected, -1)], ([tag]) => tag);
  return [...counts].flatMap(([tag, all]) => {
    const sum = all.reduce((total, [, sign]) => total + sign, 0);
    return sum === 0 ? [] : [`${tag}: ${sum > 0 ? `${sum} too many` : `${-sum} missing`}`];
  });
}

async function recordedEvents() {
  const rows = await query<{ event: Buffer }>("SELECT event FROM usage.record");
  return rows.map(({ event }) => fromBinary(GenerationEventSchema, event));
}

/** The tag of each record, of which all are of requests that succeeded. */
async function recordedTags(): Promise<string[]> {
  const events = await recordedEvents();
  expect(events.filter(({ outcome }) => outcome !== Outcome.SUCCEEDED)).toEqual([]);
  return events.map(({ sessionId }) => sessionId);
}

/** Open ones, and those whose event has not been met on the topic. */
async function unsettledHolds(): Promise<number> {
  const [row] = await query<{ count: string }>(
    "SELECT count(*) FROM account.hold WHERE state = 'open' OR (state = 'settled' AND NOT seen)",
  );
  return Number(row?.count);
}

async function query<R extends pg.QueryResultRow>(statement: string): Promise<R[]> {
  const client = new pg.Client({ connectionString: await database.url });
  await client.connect();
  try {
    return (await client.query<R>(statement)).rows;
  } finally {
    await client.end();
  }
}

/** `npm run reconcile`. */
async function reconcile() {
  const env = {
    ACCOUNT_URL: stack.urls.account,
    USAGE_URL: stack.urls.usage,
    ADMIN_KEY_FILE: keyFilesIn(join(dataDir, "keys")).keyFile("operator"),
  };
  const child = startChild("commands/reconcile.ts", { env, args: ["--wait", "60"] });
  const code = await child.exited;
  return { code, differences: code === 0 ? [] : child.lines };
}
