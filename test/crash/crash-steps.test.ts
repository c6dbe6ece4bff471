/**
 * A crash between any two steps of a request's life, each brought about on purpose: whatever dies, one record and the
 * right charge.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { generationEventsTopic, groups } from "../../lib/events/topics.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { kafkaUnavailable } from "../support/kafka/kafka-broker.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { AudioBehaviour } from "../upstreams/openai/openai-behaviour.ts";
import { faultsOfBooks } from "./crash-books.ts";
import { readRecords, waitUntilSettled } from "./crash-oracle.ts";
import { type CrashStack, startCrashStack } from "./crash-stack.ts";

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

const patience = { timeoutMs: 180_000, intervalMs: 50 };
const text = "Good morning.";
/** 13 characters at 15 USD a million, nano-USD. */
const price = "195000";
const chunkBytes = 4096;
/** What speech asks of account, as it stands in its requests. */
const reserveCall = "AccountInternalService/Reserve ";
const settleCall = "AccountInternalService/Settle ";

/** Streams stand still for as long as a test takes to bring its crash about; requests are lost soon. */
const env = { SPEECH_IDLE_TIMEOUT_MS: "60000", SPEECH_TIMEOUT_MS: "10000" };

const succeeded = { state: "settled", revision: 1, cost: price, outcome: Outcome.SUCCEEDED } as const;
const lost = { state: "lost", revision: 0, cost: "0", outcome: Outcome.LOST } as const;

let stack: CrashStack;
let turn = 0;

beforeAll(async () => {
  if (kafkaUnavailable() !== undefined) return;
  stack = await startCrashStack({ sides: ["a"], accounts: 12, accountProxies: true, env });
  await stack.broker.restart();
  await stack.makeTopics();
});

beforeEach((context) => {
  needKafka(context);
  turn += 1;
});

afterAll(async () => {
  await stack?.close();
});

test("settled and never published: account publishes the event", async () => {
  await stack.broker.kill();
  expect(await heard(speak())).toBe("whole");
  await stack.processes.kill("speech a");
  expect(await holds()).toEqual([{ state: "settled", revision: 1, seen: false, debited: price }]);
  expect(await records()).toEqual([]);
  await stack.broker.restart();
  await expectEnd(succeeded);
  await stack.processes.restart("speech a");
});

test("published and never settled: account settles what it meets on the topic", async () => {
  const stream = gatedStream();
  const answer = await speak();
  await stack.processes.kill("account a");
  stream.goOn();
  expect(await heard(answer)).toBe("whole");
  await stack.processes.kill("speech a");
  expect(await holds()).toEqual([{ state: "open", revision: null, seen: false, debited: "0" }]);
  await stack.processes.restart("account a");
  await expectEnd(succeeded);
  await stack.processes.restart("speech a");
});

test("killed between hold and attempt: lost, free of charge, and the hold is given back", async () => {
  const { answer, visits } = await reserveUnheard();
  await stack.processes.kill("speech a");
  stack.accountProxy("a").dropConnections();
  expect(await heard(answer)).toBe("error 503");
  await expectEnd(lost);
  expect(stack.upstream.requests.length).toBe(visits);
  await stack.processes.restart("speech a");
});

test("killed in the middle of an attempt: lost, free of charge, and the hold is given back", async () => {
  gatedStream();
  const answer = await speak();
  await stack.processes.kill("speech a");
  expect(await heard(answer)).toBe("broken");
  await expectEnd(lost);
  await stack.processes.restart("speech a");
});

test("lost first, the real event later: it takes the place of the lost one and is charged", async () => {
  gatedStream();
  const answer = await speak();
  stack.processes.pause("speech a");
  const broken = heard(answer);
  await expectEnd(lost);
  stack.processes.resume("speech a");
  expect(await broken).toBe("broken");
  await waitUntil(async () => (await records())[0]?.revision === 1, patience);
  // Whether it hears first that its time is over or that its caller has gone, who then misses nothing that counts, is a
  // matter of chance.
  const outcome = expect.toBeOneOf([Outcome.FAILED, Outcome.SUCCEEDED]);
  await expectEnd({ state: "settled", revision: 1, cost: price, outcome });
});

test("cut off from both homes until it counts as lost: its event takes the place of the lost one", async () => {
  const stream = gatedStream();
  const answer = await speak();
  const proxy = stack.accountProxy("a");
  proxy.goAway();
  await stack.broker.kill();
  stream.goOn();
  // Both homes being away, the end of the answer waits until its time is over.
  expect(await heard(answer)).toBe("broken");
  stack.processes.pause("speech a");
  await stack.broker.restart();
  await waitUntil(async () => (await records()).length > 0, patience);
  await expectEnd(lost);
  stack.processes.resume("speech a");
  await waitUntil(async () => (await records())[0]?.revision === 1, patience);
  proxy.comeBack();
  await expectEnd(succeeded);
});

test("paused between hold and attempt until the hold is lost: no attempt follows", async () => {
  const { answer, visits } = await reserveUnheard();
  stack.processes.pause("speech a");
  stack.accountProxy("a").passAnswers();
  await waitUntil(async () => (await records()).length > 0, patience);
  stack.processes.resume("speech a");
  expect(await heard(answer)).toMatch(/^error/);
  expect(await heard(speak())).toBe("whole");
  expect(stack.upstream.requests.length).toBe(visits + 1);
  // An answer waits for the first of Kafka and account.
  await waitUntil(async () => (await holds()).every(({ state }) => state !== "open"), patience);
  const [lost, later] = (await holds()).toSorted(
    (one, other) => Number(one.revision) - Number(other.revision),
  );
  expect(lost).toEqual({ state: "lost", revision: 0, seen: true, debited: "0" });
  expect(later).toMatchObject({ state: "settled", debited: price });
  await expectBooks();
});

test("the answer to a reservation is lost: the same hold serves the request", async () => {
  const { answer } = await reserveUnheard();
  stack.accountProxy("a").dropConnections();
  expect(await heard(answer)).toBe("whole");
  await expectEnd(succeeded);
});

test("no answer to a reservation ever comes: it is given back, and leaves no record", async () => {
  const { answer, visits } = await reserveUnheard();
  expect(await heard(answer)).toMatch(/^error/);
  stack.accountProxy("a").dropConnections();
  await waitUntil(async () => (await holds())[0]?.state === "released", patience);
  expect(stack.upstream.requests.length).toBe(visits);
  expect(await records()).toEqual([]);
  await expectBooks();
});

test("the answer to a settlement is lost while Kafka is away: told again, it is charged once", async () => {
  await stack.broker.kill();
  const stream = gatedStream();
  const answer = await speak();
  const proxy = stack.accountProxy("a");
  proxy.holdAnswersTo(settleCall);
  stream.goOn();
  await waitUntil(async () => (await holds())[0]?.state === "settled", patience);
  proxy.dropConnections();
  expect(await heard(answer)).toBe("whole");
  await stack.broker.restart();
  await expectEnd(succeeded);
});

test("account killed between claiming what is due and publishing it: it publishes it later", async () => {
  gatedStream();
  const answer = await speak();
  await stack.broker.kill();
  await stack.processes.kill("speech a");
  expect(await heard(answer)).toBe("broken");
  await waitUntil(async () => {
    const [hold] = await stack.database.query<{ publish_count: number }>(
      "SELECT publish_count FROM account.hold WHERE account_id = $1",
      [account().accountId],
    );
    return hold?.publish_count === 1;
  }, patience);
  await stack.processes.kill("account a");
  await stack.broker.restart();
  await stack.processes.restart("account a");
  await expectEnd(lost);
  await stack.processes.restart("speech a");
});

test("killed between storing an event and saying so to Kafka: it comes again and changes nothing", async () => {
  expect(await heard(speak())).toBe("whole");
  await expectEnd(succeeded);
  const before = { holds: await holds(), records: await records() };
  await Promise.all([stack.processes.kill("account a"), stack.processes.kill("usage a")]);
  await Promise.all([rewind(groups.account), rewind(groups.usage)]);
  await Promise.all([stack.processes.restart("account a"), stack.processes.restart("usage a")]);
  // It stands behind the first in the same partition: once it has arrived, the first has come again.
  expect(await heard(speak())).toBe("whole");
  await expectBooks();
  expect(await holds()).toEqual([before.holds, before.holds].flat());
  expect(await records()).toEqual([before.records, before.records].flat());
});

/** A group goes on from the beginning of the topic, as if it had committed nothing. */
async function rewind(group: string): Promise<void> {
  const connection = { brokers: stack.broker.brokers, ssl: false };
  const bus = createKafkaBus({ connection, clientId: "test", log: silentLog });
  const place = { topic: generationEventsTopic, group, timestampMs: 0 };
  // The brokers take members that were killed for living ones for a while.
  await waitUntil(() => bus.seek(place, AbortSignal.timeout(20_000)).then(() => true), patience);
  await bus.close();
}

/** Asks to speak, as an account that no other test has; resolves with the beginning of the answer. */
function speak(): Promise<Response> {
  return fetch(`${stack.restUrl("a")}/audio/speech`, {
    method: "POST",
    headers: { authorization: `Bearer ${account().key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "openai/tts-1", voice: "alloy", response_format: "pcm", input: text }),
  });
}

function account() {
  const found = stack.accounts[turn - 1];
  if (found === undefined) throw new Error("there are too few accounts");
  return found;
}

/** How an answer ends. */
async function heard(answering: Response | Promise<Response>): Promise<string> {
  try {
    const answer = await answering;
    await answer.arrayBuffer();
    return answer.status === 200 ? "whole" : `error ${answer.status}`;
  } catch {
    return "broken";
  }
}

/** The next stream stands still behind its first chunk until it may go on. */
function gatedStream() {
  const rest = Promise.withResolvers<void>();
  const beforeChunk = (index: number) => (index === 0 ? undefined : rest.promise);
  const behaviour: AudioBehaviour = { kind: "audio", totalBytes: 2 * chunkBytes, chunkBytes, beforeChunk };
  stack.upstream.next(behaviour);
  return { goOn: () => rest.resolve() };
}

/** Asks to speak; credit is held for it, and speech does not hear of that. */
async function reserveUnheard() {
  const visits = stack.upstream.requests.length;
  stack.accountProxy("a").holdAnswersTo(reserveCall);
  const answer = speak();
  await waitUntil(async () => (await holds())[0]?.state === "open", patience);
  return { answer, visits };
}

/** The account's holds, with what the ledger says of them. */
function holds() {
  return stack.database.query(
    `SELECT state, revision, seen, (SELECT coalesce(sum(amount_nano_usd), 0)::text FROM account.ledger_entry
       WHERE generation_id = hold.id) AS debited
     FROM account.hold WHERE account_id = $1`,
    [account().accountId],
  );
}

/** The account's records. */
async function records() {
  const all = [...(await readRecords(stack)).values()].flat();
  return all
    .filter(({ event }) => event.accountId === account().accountId)
    .map(({ revision, costNanoUsd, event: { outcome, attempts } }) => ({
      revision,
      cost: String(costNanoUsd),
      outcome,
      attempts: attempts.length,
    }));
}

/** What the account's one request has come to. */
interface End {
  readonly state: "settled" | "lost";
  readonly revision: number;
  readonly cost: string;
  readonly outcome: Outcome;
}

async function expectEnd({ state, revision, cost, outcome }: End): Promise<void> {
  await expectBooks();
  expect(await holds()).toEqual([{ state, revision, seen: true, debited: cost }]);
  expect(await records()).toEqual([{ revision, cost, outcome, attempts: revision }]);
}

/** Once all has arrived, holds, ledger, records and roll-ups agree. */
async function expectBooks(): Promise<void> {
  await waitUntilSettled(stack);
  const { agrees, lines } = await stack.reconcile("a");
  expect(agrees ? [] : lines).toEqual([]);
  expect(await faultsOfBooks(stack)).toEqual([]);
}
