import { describe, expect, test } from "vitest";
import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { ProviderError, type ProviderErrorKind } from "../contract.ts";
import { type AttemptEndpoint, runAttempts } from "./attempt.ts";
import { EndpointHealth } from "./endpoint-health.ts";

const longMs = 60_000;
const limited = new ProviderError("overloaded", "limited", { status: 429 });
const of = (id: string, part: Partial<AttemptEndpoint> = {}): AttemptEndpoint => ({
  id,
  providerSlug: id,
  providerName: id,
  ...part,
});
const keys = [of("a", { operatorKey: 0 }), of("a", { operatorKey: 1 }), of("b")];

/** Whose turn it was, each failing as told or having its output, each sent all of the request. */
async function turns(
  errorOf: (endpoint: AttemptEndpoint) => ProviderError | undefined,
  candidates: readonly AttemptEndpoint[] = keys,
  health = new EndpointHealth({ clock }),
) {
  const tried: (readonly [string, number | undefined])[] = [];
  const attempts = runAttempts<AttemptEndpoint, string>({
    candidates,
    health,
    clock,
    random: () => 0,
    firstOutputTimeoutMs: longMs,
    signal: new AbortController().signal,
    attempt: async (endpoint, { onSent }) => {
      onSent();
      const error = errorOf(endpoint);
      if (error !== undefined) throw error;
      return "voice";
    },
    onAttempt: ({ endpoint }) => tried.push([endpoint.id, endpoint.operatorKey]),
  });
  await attempts.catch(() => undefined);
  return tried;
}

const failed = (kind: ProviderErrorKind, status?: number) =>
  new ProviderError(kind, "no", status === undefined ? {} : { status });

describe("of several keys of the operator", () => {
  test.each([limited, failed("credentials", 401)])("the next one is tried after $kind", async (error) => {
    expect(await turns(() => error)).toEqual([
      ["a", 0],
      ["a", 1],
      ["b", undefined],
    ]);
  });

  test.each([
    ["an overload of all", failed("overloaded", 503)],
    ["a time-out", failed("timeout")],
    ["a broken connection", failed("network")],
    ["a failure", failed("upstream", 500)],
    ["nonsense", failed("bad_answer")],
  ])("the others of that endpoint are passed over after %s", async (_, error) => {
    expect(await turns(() => error)).toEqual([
      ["a", 0],
      ["b", undefined],
    ]);
  });

  test("all have their turn whatever an own key met", async () => {
    const own = of("a", { ownKey: "secret" });
    const error = failed("upstream");
    expect(await turns(({ ownKey }) => (ownKey === undefined ? limited : error), [own, ...keys])).toEqual([
      ["a", undefined],
      ["a", 0],
      ["a", 1],
      ["b", undefined],
    ]);
  });

  test("one that was refused rests alone", async () => {
    const health = new EndpointHealth({ clock, breaker: { failuresToOpen: 1, openMs: longMs } });
    const refusesFirst = ({ operatorKey }: AttemptEndpoint) => (operatorKey === 0 ? limited : undefined);
    expect(await turns(refusesFirst, keys, health)).toEqual([
      ["a", 0],
      ["a", 1],
    ]);
    expect(await turns(refusesFirst, keys, health)).toEqual([["a", 1]]);
  });
});
