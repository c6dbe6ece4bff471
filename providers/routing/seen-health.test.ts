import { expect, test } from "vitest";
import { ProviderError } from "../contract.ts";
import { EndpointHealth } from "./endpoint-health.ts";
import { seenHealth } from "./seen-health.ts";

const endpoint = { id: "one", providerSlug: "acme" };
const failed = new ProviderError("upstream", "failed");
const refused = new ProviderError("credentials", "refused", { status: 401 });
const wrong = new ProviderError("invalid_request", "wrong");

function observed(keys: number) {
  let nowMs = 0;
  const clock = { nowMs: () => 1_000_000 + nowMs, monotonicMs: () => nowMs };
  const health = new EndpointHealth({ clock, breaker: { failuresToOpen: 1, openMs: 60_000 } });
  const attempt = async (error?: ProviderError, ...ids: [string, string?]) => {
    nowMs += 100;
    const admission = health.admit(...ids);
    if (!admission.admitted) throw new Error("not admitted");
    if (error !== undefined) return await admission.attempt.failed(error);
    await admission.attempt.succeeded(250);
    health.recordAnswer(40, ...ids);
  };
  return { attempt, seen: () => seenHealth(endpoint, { health, providers: { operatorKeys: () => keys } }) };
}

test("of an endpoint that nobody tried is nothing", () => {
  expect(observed(1).seen()).toEqual({
    breakerOpen: false,
    ended: 0,
    failed: 0,
    firstOutputMs: undefined,
    unitsPerSecond: undefined,
    lastFailure: undefined,
  });
});

test("has the share of failures, the last of them with its time, and what the others took", async () => {
  const { attempt, seen } = observed(1);
  await attempt(undefined, "one");
  await attempt(wrong, "one");
  expect(seen()).toMatchObject({ ended: 2, failed: 0, lastFailure: undefined });
  await attempt(failed, "one");
  expect(seen()).toEqual({
    breakerOpen: true,
    ended: 3,
    failed: 1,
    firstOutputMs: 250,
    unitsPerSecond: 40,
    lastFailure: { kind: "upstream", atMs: 1_000_300 },
  });
});

test("counts each attempt once over several keys, and is open once all of them are", async () => {
  const { attempt, seen } = observed(2);
  await attempt(undefined, "one", "one by key 0");
  await attempt(refused, "one", "one by key 0");
  expect(seen()).toMatchObject({
    breakerOpen: false,
    ended: 2,
    failed: 1,
    lastFailure: { kind: "credentials", atMs: 1_000_200 },
  });
  await attempt(refused, "one", "one by key 1");
  expect(seen()).toMatchObject({ breakerOpen: true, ended: 3, failed: 2 });
});

test("is what own keys met where the operator has no key", async () => {
  const { attempt, seen } = observed(0);
  await attempt(failed, "one by own keys");
  expect(seen()).toMatchObject({ breakerOpen: true, ended: 1, failed: 1, lastFailure: { kind: "upstream" } });
});
