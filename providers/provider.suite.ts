import { expect, type TestContext, test, vi } from "vitest";
import {
  type AdapterFailure,
  type AdapterSetup,
  attempt,
  describeAdapter,
  notCounted,
  readOn,
  soon,
  untilIdle,
} from "./adapter.suite.ts";
import type { AudioFormat, SpeechAdapter, SpeechAnswer, SpeechCall } from "./contract.ts";

/** A provider to examine. Its call is long enough for several chunks. */
export interface SpeechProviderSetup extends AdapterSetup<SpeechAdapter, SpeechCall> {
  /** Formats to ask for; only the call's own unless given. */
  readonly formats?: readonly AudioFormat[];
  /** For: a slow consumer. */
  readonly pace?: SpeechPace;
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
export type SpeechFailure<S extends SpeechProviderSetup> = AdapterFailure<S, SpeechCall>;

/**
 * The acceptance suite of a speech provider: what contract.ts promises, tried from outside. A provider's own test calls
 * it at its top level.
 */
export function describeSpeechProvider<S extends SpeechProviderSetup>(
  name: string,
  setup: () => S | Promise<S>,
  failures: readonly SpeechFailure<S>[] = [],
): void {
  const use = {
    begin: async ({ adapter }: S, ...asked: Parameters<SpeechAdapter["synthesize"]>) =>
      (await adapter.synthesize(...asked)).audio,
    lastingCall: ({ call }: S) => call,
    textOf: ({ input }: SpeechCall) => input,
  };
  describeAdapter(`${name} keeps the contract of a speech provider`, setup, use, failures, (given) => {
    describeAnswers(given);
    // contract.ts, 2.
    test("hands out its first chunk while the upstream still works", async (context) => {
      const { adapter, call, connection, running = context.skip(notCounted) } = given();
      const answer = await adapter.synthesize(call, attempt(connection).context);
      const audio = answer.audio[Symbol.asyncIterator]();
      expect((await audio.next()).done).not.toBe(true);
      expect(running()).toBeGreaterThan(0);
      await audio.return?.();
      await untilIdle(running);
    });
    test("does not run far ahead of a consumer that has stopped", async (context) => {
      await expectBoundedProduction(given(), context);
    });
  });
}

function describeAnswers(setup: () => SpeechProviderSetup): void {
  test("speaks every format in chunks of at least one byte, pcm in whole samples", async () => {
    const { adapter, call, connection, formats = [call.format] } = setup();
    for (const format of formats) {
      const answer = await adapter.synthesize({ ...call, format }, attempt(connection).context);
      expect(answer.format).toBe(format === "wav" ? "pcm" : format);
      expect(answer.sampleRateHz).toBeGreaterThanOrEqual(8000);
      expect([1, 2]).toContain(answer.channels);
      const chunks = await readAll(answer);
      expect(chunks.every((chunk) => chunk instanceof Uint8Array && chunk.length > 0)).toBe(true);
      const bytes = totalBytes(chunks);
      expect(bytes).toBeGreaterThan(0);
      if (answer.format === "pcm") expect(bytes % (2 * answer.channels)).toBe(0);
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

  test("keeps two calls at the same time apart", async () => {
    const { adapter, call, connection } = setup();
    const speak = async () =>
      totalBytes(await readAll(await adapter.synthesize(call, attempt(connection).context)));
    const alone = await speak();
    expect(await Promise.all([speak(), speak()])).toEqual([alone, alone]);
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

async function readAll(answer: SpeechAnswer): Promise<readonly Uint8Array[]> {
  return await Array.fromAsync(answer.audio);
}

function totalBytes(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}

function expectUsage(answer: SpeechAnswer): void {
  const counts = Object.values(answer.report()?.tokens ?? {});
  expect(counts.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
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
