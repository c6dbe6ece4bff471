import { afterAll, beforeAll, describe, expect, type TestContext, test, vi } from "vitest";
import {
  type AttemptContext,
  type AudioFormat,
  type ProviderConnection,
  ProviderError,
  type ProviderErrorKind,
  type SpeechAdapter,
  type SpeechAnswer,
  type SpeechCall,
} from "./contract.ts";

/** A provider to examine, and what may be known of its upstream. Each optional part switches tests on. */
export interface SpeechProviderSetup {
  readonly adapter: SpeechAdapter;
  readonly connection: ProviderConnection;
  /** A valid call, long enough for several chunks. */
  readonly call: SpeechCall;
  /** Formats to ask for; only the call's own unless given. */
  readonly formats?: readonly AudioFormat[];
  /** How many requests or pieces of work run at the upstream now. For: streaming, abort, early return. */
  running?(): number;
  /** For: a slow consumer. */
  readonly pace?: SpeechPace;
  /** Frees what the setup holds. */
  close?(): void | Promise<void>;
}

/** How to see whether a provider keeps to its consumer's pace. */
export interface SpeechPace {
  /** A valid call that yields much more than `maxAheadBytes`. */
  readonly longCall: SpeechCall;
  /** Bytes of audio that the upstream has handed out since the start, read by the consumer or not. */
  producedBytes(): number;
  /** How far production may run ahead of a consumer that has stopped. */
  readonly maxAheadBytes: number;
}

/** One way to make a provider fail before its first audio. */
export interface SpeechFailure<S extends SpeechProviderSetup> {
  readonly name: string;
  readonly kind: ProviderErrorKind;
  /** The upstream's status that the error must carry; unset: none. */
  readonly status?: number;
  /** Makes the next request fail; returns what to ask when it is not the setup's own call and connection. */
  provoke(given: S): Provoked | undefined | Promise<Provoked | undefined>;
}

/** What to ask in place of the setup's own. */
export interface Provoked {
  readonly call?: SpeechCall;
  readonly connection?: ProviderConnection;
}

/**
 * The acceptance suite of a speech provider: what contract.ts promises, tried from outside. A provider's own test calls
 * it at its top level.
 */
export function describeSpeechProvider<S extends SpeechProviderSetup>(
  name: string,
  setup: () => S | Promise<S>,
  failures: readonly SpeechFailure<S>[] = [],
): void {
  describe(`${name} keeps the contract of a speech provider`, () => {
    let given: S;
    beforeAll(async () => {
      given = await setup();
    });
    afterAll(async () => await given?.close?.());

    describeAnswers(() => given);
    describeEnding(() => given);
    test("does not run far ahead of a consumer that has stopped", async (context) => {
      await expectBoundedProduction(given, context);
    });
    for (const failure of failures) {
      test(`${failure.name}: throws ${failure.kind}`, async () => await expectFailure(given, failure));
    }
  });
}

/** How long the suite waits for what must come soon. */
const soon = { timeout: 10_000, interval: 10 };

const notCounted = "the setup does not count what runs at its upstream";

function describeAnswers(setup: () => SpeechProviderSetup): void {
  test("speaks every format in chunks of at least one byte, pcm in whole samples", async () => {
    const { adapter, call, connection, formats = [call.format] } = setup();
    for (const format of formats) {
      const answer = await adapter.synthesize({ ...call, format }, attempt(connection).context);
      expect(answer.format).toBe(format);
      expect(answer.sampleRateHz).toBeGreaterThanOrEqual(8000);
      expect([1, 2]).toContain(answer.channels);
      const chunks = await readAll(answer);
      expect(chunks.every((chunk) => chunk instanceof Uint8Array && chunk.length > 0)).toBe(true);
      const bytes = totalBytes(chunks);
      expect(bytes).toBeGreaterThan(0);
      if (format === "pcm") expect(bytes % (2 * answer.channels)).toBe(0);
      expectUsage(answer);
    }
  });

  test("ignores options and settings that it does not know", async () => {
    const { adapter, call, connection } = setup();
    const odd = {
      ...call,
      options: { "x-unknown": { deep: [1] } },
      settings: { ...call.settings, "x-unknown": 1 },
    };
    const chunks = await readAll(await adapter.synthesize(odd, attempt(connection).context));
    expect(totalBytes(chunks)).toBeGreaterThan(0);
  });

  test("reports once that its request has been sent, before there is an answer", async () => {
    const { adapter, call, connection } = setup();
    const order: string[] = [];
    const { context } = attempt(connection, () => order.push("sent"));
    const answer = await adapter.synthesize(call, context);
    order.push("answered");
    await readAll(answer);
    expect(order).toEqual(["sent", "answered"]);
  });

  test("keeps two calls at the same time apart", async () => {
    const { adapter, call, connection } = setup();
    const speak = async () =>
      totalBytes(await readAll(await adapter.synthesize(call, attempt(connection).context)));
    const alone = await speak();
    expect(await Promise.all([speak(), speak()])).toEqual([alone, alone]);
  });
}

function describeEnding(setup: () => SpeechProviderSetup): void {
  test("hands out its first chunk while the upstream still works", async (context) => {
    const { adapter, call, connection, running = context.skip(notCounted) } = setup();
    const answer = await adapter.synthesize(call, attempt(connection).context);
    const audio = answer.audio[Symbol.asyncIterator]();
    expect((await audio.next()).done).not.toBe(true);
    expect(running()).toBeGreaterThan(0);
    await audio.return?.();
    await untilIdle(running);
  });

  test("ends upstream work when the consumer leaves early", async (context) => {
    const { adapter, call, connection, running = context.skip(notCounted) } = setup();
    const answer = await adapter.synthesize(call, attempt(connection).context);
    for await (const chunk of answer.audio) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    await untilIdle(running);
  });

  test("ends upstream work and throws when the signal fires amid the audio", async (context) => {
    const { adapter, call, connection, running = context.skip(notCounted) } = setup();
    const { controller, context: inside } = attempt(connection);
    const answer = await adapter.synthesize(call, inside);
    const audio = answer.audio[Symbol.asyncIterator]();
    await audio.next();
    controller.abort();
    await untilIdle(running);
    await expect(readOn(audio)).rejects.toBeInstanceOf(ProviderError);
  });

  test("throws and leaves nothing behind when the signal fires before the answer", async (context) => {
    const { adapter, call, connection, running = context.skip(notCounted) } = setup();
    const { controller, context: inside } = attempt(connection);
    const answer = adapter.synthesize(call, inside).then(readAll);
    controller.abort();
    await expect(answer).rejects.toBeInstanceOf(ProviderError);
    await untilIdle(running);
  });

  test("throws and begins nothing when the signal has fired already", async (context) => {
    const { adapter, call, connection, running = context.skip(notCounted) } = setup();
    const { controller, context: inside } = attempt(connection);
    controller.abort();
    await expect(adapter.synthesize(call, inside).then(readAll)).rejects.toBeInstanceOf(ProviderError);
    expect(running()).toBe(0);
  });
}

async function expectBoundedProduction(given: SpeechProviderSetup, context: TestContext): Promise<void> {
  const {
    adapter,
    connection,
    pace = context.skip("the setup does not say what its upstream has produced"),
  } = given;
  const { longCall, producedBytes, maxAheadBytes } = pace;
  const before = producedBytes();
  const answer = await adapter.synthesize(longCall, attempt(connection).context);
  const audio = answer.audio[Symbol.asyncIterator]();
  await audio.next();
  await untilSteady(producedBytes);
  expect(producedBytes() - before).toBeLessThanOrEqual(maxAheadBytes);
  await readOn(audio);
  // Else the call was too short to show anything.
  expect(producedBytes() - before).toBeGreaterThan(maxAheadBytes);
}

async function expectFailure<S extends SpeechProviderSetup>(
  given: S,
  failure: SpeechFailure<S>,
): Promise<void> {
  const asked: Provoked = (await failure.provoke(given)) ?? {};
  const { call = given.call, connection = given.connection } = asked;
  const thrown: unknown = await given.adapter
    .synthesize(call, attempt(connection).context)
    .then(readAll)
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  expect(thrown).toBeInstanceOf(ProviderError);
  if (!(thrown instanceof ProviderError)) return;
  expect({ kind: thrown.kind, status: thrown.status }).toEqual({
    kind: failure.kind,
    status: failure.status,
  });
  expect(thrown.message).not.toBe("");
  const secrets = [call.input, connection.apiKey, connection.baseUrl].filter((text) => text.trim() !== "");
  for (const secret of secrets) expect(thrown.message).not.toContain(secret);
  if (given.running !== undefined) await untilIdle(given.running);
}

function attempt(connection: ProviderConnection, onSent = () => {}) {
  const controller = new AbortController();
  const context: AttemptContext = { signal: controller.signal, connection, onSent };
  return { controller, context };
}

async function readAll(answer: SpeechAnswer): Promise<readonly Uint8Array[]> {
  return await Array.fromAsync(answer.audio);
}

async function readOn(audio: AsyncIterator<Uint8Array>): Promise<void> {
  while ((await audio.next()).done !== true);
}

function totalBytes(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}

function expectUsage(answer: SpeechAnswer): void {
  const counts = Object.values(answer.usage() ?? {});
  expect(counts.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
}

async function untilIdle(running: () => number): Promise<void> {
  await vi.waitFor(() => expect(running()).toBe(0), soon);
}

/** Waits until a count has stood still for a while: what runs ahead has then run as far as it will. */
async function untilSteady(count: () => number): Promise<void> {
  let last = count();
  let same = 0;
  await vi.waitFor(() => {
    const now = count();
    same = now === last ? same + 1 : 0;
    last = now;
    expect(same).toBeGreaterThanOrEqual(20);
  }, soon);
}
