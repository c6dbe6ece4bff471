import { afterAll, beforeAll, describe, expect, type TestContext, test, vi } from "vitest";
import {
  type AttemptContext,
  type ProviderConnection,
  ProviderError,
  type ProviderErrorKind,
} from "./contract.ts";

/** A provider's adapter to examine, and what may be known of its upstream. Each optional part switches tests on. */
export interface AdapterSetup<A, C> {
  readonly adapter: A;
  readonly connection: ProviderConnection;
  /** A valid call. */
  readonly call: C;
  /** How many requests or pieces of work run at the upstream now. For: streaming, abort, early return. */
  running?(): number;
  /** Frees what the setup holds. */
  close?(): void | Promise<void>;
}

/** One way to make a provider fail before its first output. */
export interface AdapterFailure<S, C> {
  readonly name: string;
  readonly kind: ProviderErrorKind;
  /** The upstream's status that the error must carry; unset: none. */
  readonly status?: number;
  /** Makes the next request fail; returns what to ask when it is not the setup's own call and connection. */
  provoke(given: S): Provoked<C> | undefined | Promise<Provoked<C> | undefined>;
}

interface Provoked<C> {
  readonly call?: C;
  readonly connection?: ProviderConnection;
}

/** How adapters of one medium are used. */
export interface AdapterUse<S, C> {
  /** Begins an answer; its output as it comes. */
  begin(given: S, call: C, context: AttemptContext): Promise<AsyncIterable<unknown>>;
  /** A call whose upstream is still at work when its first output is in hand; skips the test where there is none. */
  lastingCall(given: S, context: TestContext): C;
  /** The caller's text, which no error may show. */
  textOf(call: C): string;
}

/** What is promised whatever the medium; `describeMedium` adds what is not, with the setup by then made. */
export function describeAdapter<S extends AdapterSetup<unknown, C>, C>(
  name: string,
  setup: () => S | Promise<S>,
  use: AdapterUse<S, C>,
  failures: readonly AdapterFailure<S, C>[],
  describeMedium: (given: () => S) => void,
): void {
  describe(name, () => {
    let given: S;
    beforeAll(async () => {
      given = await setup();
    });
    afterAll(async () => await given?.close?.());

    // contract.ts, 6.
    test("reports once that its request has been sent, before there is an answer", async () => {
      const order: string[] = [];
      const { context } = attempt(given.connection, () => order.push("sent"));
      const output = await use.begin(given, given.call, context);
      order.push("answered");
      await Array.fromAsync(output);
      expect(order).toEqual(["sent", "answered"]);
    });
    describeMedium(() => given);
    describeEnding(() => given, use);
    for (const failure of failures) {
      test(`${failure.name}: throws ${failure.kind}`, () => expectFailure(given, use, failure));
    }
  });
}

/** How long the suites wait for what must come soon. */
export const soon = { timeout: 10_000, interval: 10 };

/** Why a test is skipped that looks at the upstream. */
export const notCounted = "the setup does not count what runs at its upstream";

function describeEnding<S extends AdapterSetup<unknown, C>, C>(setup: () => S, use: AdapterUse<S, C>): void {
  // contract.ts, 3.
  test("ends upstream work when the consumer leaves early", async (context) => {
    const given = setup();
    const { connection, running = context.skip(notCounted) } = given;
    const call = use.lastingCall(given, context);
    for await (const _ of await use.begin(given, call, attempt(connection).context)) break;
    await untilIdle(running);
  });

  test("ends upstream work and throws when the signal fires amid the output", async (context) => {
    const given = setup();
    const { connection, running = context.skip(notCounted) } = given;
    const { controller, context: inside } = attempt(connection);
    const answer = await use.begin(given, use.lastingCall(given, context), inside);
    const output = answer[Symbol.asyncIterator]();
    expect((await output.next()).done).not.toBe(true);
    controller.abort();
    await untilIdle(running);
    await expect(readOn(output)).rejects.toBeInstanceOf(ProviderError);
  });

  test.for([
    ["throws and leaves nothing behind when the signal fires before the answer", false],
    ["throws and begins nothing when the signal has fired already", true],
  ] as const)("%s", async ([, hasFired], context) => {
    const given = setup();
    const { call, connection, running = context.skip(notCounted) } = given;
    const { controller, context: inside } = attempt(connection);
    if (hasFired) controller.abort();
    const output = use.begin(given, call, inside).then((answer) => Array.fromAsync(answer));
    controller.abort();
    await expect(output).rejects.toBeInstanceOf(ProviderError);
    if (hasFired) expect(running()).toBe(0);
    await untilIdle(running);
  });
}

async function expectFailure<S extends AdapterSetup<unknown, C>, C>(
  given: S,
  use: AdapterUse<S, C>,
  failure: AdapterFailure<S, C>,
): Promise<void> {
  const { call = given.call, connection = given.connection } = (await failure.provoke(given)) ?? {};
  const thrown: unknown = await use
    .begin(given, call, attempt(connection).context)
    .then((output) => Array.fromAsync(output))
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  // contract.ts, 4.
  expect(thrown).toBeInstanceOf(ProviderError);
  if (!(thrown instanceof ProviderError)) return;
  expect({ kind: thrown.kind, status: thrown.status }).toEqual({
    kind: failure.kind,
    status: failure.status,
  });
  expect(thrown.message).not.toBe("");
  const secrets = [use.textOf(call), connection.apiKey, connection.baseUrl];
  for (const secret of secrets.filter((text) => text.trim() !== "")) {
    expect(thrown.message).not.toContain(secret);
  }
  if (given.running !== undefined) await untilIdle(given.running);
}

/** A new attempt, and what ends it. */
export function attempt(connection: ProviderConnection, onSent = () => {}) {
  const controller = new AbortController();
  const context: AttemptContext = { signal: controller.signal, connection, onSent };
  return { controller, context };
}

/** Takes what comes until there is no more. */
export async function readOn(output: AsyncIterator<unknown>): Promise<void> {
  while ((await output.next()).done !== true);
}

/** Resolves once nothing runs at the upstream. */
export async function untilIdle(running: () => number): Promise<void> {
  await vi.waitFor(() => expect(running()).toBe(0), soon);
}
