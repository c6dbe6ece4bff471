/**
 * Mixed requests over two copies of every service while parts of the system die and come back. Whatever dies, every
 * request that reached an upstream or was answered leaves exactly one record, and the books add up.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { needKafka } from "../support/kafka/kafka.ts";
import { kafkaUnavailable } from "../support/kafka/kafka-broker.ts";
import { waitUntil } from "../support/wait-until.ts";
import { faultsOfBooks } from "./crash-books.ts";
import { CrashLoad } from "./crash-load.ts";
import { judge, readRecords, readVisits, reportOf, waitUntilSettled } from "./crash-oracle.ts";
import { type CrashStack, startCrashStack } from "./crash-stack.ts";
import { crashUpstream, wholeShare } from "./crash-traffic.ts";

vi.setConfig({ testTimeout: 900_000, hookTimeout: 300_000 });

const requests = 2000;
/** On each side. */
const clients = 8;
/** Generous: the machine may have other work. */
const patience = { timeoutMs: 300_000, intervalMs: 5 };

/** What should never be said, whatever dies: what the design calls unreachable, or a loss. */
const alarms =
  /an event without a hold|an event for a hold that was|has no home|did not take an event|event quarantined|can't be published and is left out|was rejected|uncaught exception|"level":"fatal"/;

let stack: CrashStack;
const outcomes: CrashLoad["outcomes"] = new Map();
let kafkaIsThere = false;

beforeAll(async () => {
  if (kafkaUnavailable() !== undefined) return;
  stack = await startCrashStack({ sides: ["a", "b"], accounts: 12, upstream: crashUpstream() });
});

beforeEach((context) => needKafka(context));

afterAll(async () => {
  await stack?.close();
});

async function startKafka(): Promise<void> {
  if (kafkaIsThere) return;
  kafkaIsThere = true;
  await stack.broker.restart();
  await stack.makeTopics();
}

/** What a case does while its load runs. */
type Fault = (load: CrashLoad) => Promise<void>;

/** What a case came to. */
interface Proof {
  readonly load: CrashLoad;
  /** Tags of its requests that were lost. */
  readonly lost: readonly string[];
  /** How many of its requests had ended when the fault was over. */
  readonly endedInFault: number;
}

/** Runs a load with a fault, waits until all has arrived, and compares. */
async function prove(name: string, fault: Fault): Promise<Proof> {
  const load = new CrashLoad({ stack, name, requests, clients });
  const running = load.run();
  let endedInFault = 0;
  try {
    await fault(load);
    endedInFault = load.ended;
  } finally {
    await running;
    for (const [tag, outcome] of load.outcomes) outcomes.set(tag, outcome);
  }
  await waitUntilSettled(stack);
  const reconciled = await stack.reconcile("a");
  const visits = readVisits(stack);
  const records = await readRecords(stack);
  const verdict = judge({ clients: outcomes, visits, records, absences: stack.processes.absences.all });
  process.stdout.write(reportOf(load, verdict));
  expect(verdict.faults).toEqual([]);
  expect(await faultsOfBooks(stack)).toEqual([]);
  expect(reconciled.agrees ? [] : reconciled.lines).toEqual([]);
  expect(stack.processes.lines().filter((line) => alarms.test(line))).toEqual([]);
  expect(load.whole).toBeGreaterThan((requests * wholeShare) / 200);
  return { load, endedInFault, lost: verdict.lost.filter((tag) => load.outcomes.has(tag)) };
}

/** The same with Kafka there from the start; the load must go on behind the fault. */
async function proveUnderLoad(name: string, fault: Fault): Promise<Proof> {
  await startKafka();
  const proof = await prove(name, fault);
  expect(proof.endedInFault).toBeLessThan(requests);
  return proof;
}

/** Resolves once so many more requests have ended. */
function progress(load: CrashLoad, count: number): Promise<unknown> {
  const enough = Math.min(load.ended + count, requests);
  return waitUntil(() => load.ended >= enough, patience);
}

const killBroker: Fault = async (load) => {
  await progress(load, 300);
  await stack.broker.kill();
  const before = load.whole;
  await progress(load, 500);
  const whole = load.whole - before;
  await stack.broker.restart();
  expect(whole).toBeGreaterThan((500 * wholeShare) / 200);
};

const killUsage: Fault = async (load) => {
  await progress(load, 300);
  await stack.processes.kill("usage a");
  await progress(load, 500);
  await stack.processes.restart("usage a");
};

const killSpeech: Fault = async (load) => {
  await progress(load, 300);
  await waitUntil(() => load.answering("a") >= 2, patience);
  await stack.processes.kill("speech a");
  await progress(load, 100);
  await stack.processes.restart("speech a");
};

const restartDatabase: Fault = async (load) => {
  await progress(load, 300);
  await stack.database.stop();
  await stack.database.start();
  await progress(load, 500);
  await stack.database.kill();
  await stack.database.start();
};

const killAccount: Fault = async (load) => {
  await progress(load, 300);
  await stack.processes.kill("account a");
  await progress(load, 100);
  await stack.processes.restart("account a");
};

const killEverything: Fault = async (load) => {
  const { broker, database, processes } = stack;
  await progress(load, 200);
  await broker.kill();
  await progress(load, 100);
  await processes.kill("account a");
  await progress(load, 50);
  await waitUntil(() => load.answering("b") >= 2, patience);
  await Promise.all([processes.kill("speech b"), processes.kill("usage b")]);
  await database.kill();
  await Promise.all([database.start(), processes.restart("speech b")]);
  await progress(load, 50);
  await Promise.all([broker.restart(), processes.restart("account a")]);
  await progress(load, 200);
  await processes.restart("usage b");
  await waitUntil(() => load.answering("a") >= 1, patience);
  const names = ["speech a", "image b", "gateway b"];
  await Promise.all([...names.map((name) => processes.kill(name)), database.stop()]);
  await Promise.all([...names.map((name) => processes.restart(name)), database.start()]);
};

test("Kafka absent at the start: everything starts, serves, and catches up", async () => {
  const { load, lost } = await prove("absent", async (running) => {
    await progress(running, requests);
    await startKafka();
  });
  expect(load.whole).toBeGreaterThan((requests * wholeShare) / 120);
  expect(lost).toEqual([]);
});

test.for([
  ["broker", "the broker is killed and comes back", killBroker],
  ["usage", "a usage process is killed and comes back", killUsage],
] as const)("%s: %s; nothing is lost", async ([name, , fault]) => {
  const { lost } = await proveUnderLoad(name, fault);
  expect(lost).toEqual([]);
});

test("speech: a speech process is killed in the middle of streams and comes back; those are lost", async () => {
  const { lost } = await proveUnderLoad("speech", killSpeech);
  const visits = readVisits(stack);
  expect(lost.filter((tag) => visits.has(tag))).not.toEqual([]);
});

test.for([
  ["database", "PostgreSQL stops and comes back, then it is killed and comes back", restartDatabase],
  ["account", "an account process is killed and comes back", killAccount],
  ["all", "all of it in one run", killEverything],
] as const)("%s: %s", async ([name, , fault]) => {
  await proveUnderLoad(name, fault);
});
