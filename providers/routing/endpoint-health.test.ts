import { describe, expect, test } from "vitest";
import { ProviderError } from "../contract.ts";
import { type AdmittedAttempt, EndpointHealth } from "./endpoint-health.ts";

function observed() {
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const health = new EndpointHealth({ clock, breaker: { failuresToOpen: 2, openMs: 60_000 } });
  const enter = (id = "one"): AdmittedAttempt => {
    const admission = health.admit(id);
    if (!admission.admitted) throw new Error("not admitted");
    return admission.attempt;
  };
  const pass = (milliseconds: number) => {
    nowMs += milliseconds;
  };
  return { health, enter, pass };
}

const busy = new ProviderError("overloaded", "busy");
const wrong = new ProviderError("invalid_request", "wrong");

describe("EndpointHealth", () => {
  test("takes an endpoint never tried for healthy and of unknown speed", () => {
    expect(observed().health.read("one")).toEqual({
      retryAfterMs: 0,
      firstOutputMs: undefined,
      unitsPerSecond: undefined,
    });
  });

  test("moves its average towards new samples, and keeps endpoints apart", async () => {
    const { health, enter } = observed();
    await enter().succeeded(100);
    expect(health.read("one").firstOutputMs).toBe(100);
    await enter().succeeded(200);
    expect(health.read("one").firstOutputMs).toBeCloseTo(120);
    for (let times = 0; times < 50; times++) await enter().succeeded(200);
    expect(health.read("one").firstOutputMs).toBeCloseTo(200, 1);
    expect(health.read("two").firstOutputMs).toBeUndefined();
  });

  test("drops an average that no sample renews, and begins anew", async () => {
    const { health, enter, pass } = observed();
    await enter().succeeded(100);
    pass(600_000);
    expect(health.read("one").firstOutputMs).toBe(100);
    pass(1);
    expect(health.read("one").firstOutputMs).toBeUndefined();
    await enter().succeeded(300);
    expect(health.read("one").firstOutputMs).toBe(300);
  });

  test("takes throughput that is a positive number", () => {
    const { health } = observed();
    for (const nonsense of [0, -1, Number.NaN, Infinity]) health.recordThroughput("one", nonsense);
    expect(health.read("one").unitsPerSecond).toBeUndefined();
    health.recordThroughput("one", 50);
    expect(health.read("one").unitsPerSecond).toBe(50);
  });

  test("rests an endpoint after failures that another could have mended", async () => {
    const { health, enter } = observed();
    await enter().failed(busy);
    expect(health.read("one").retryAfterMs).toBe(0);
    await enter().failed(busy);
    expect(health.read("one").retryAfterMs).toBeGreaterThan(0);
    expect(health.admit("one").admitted).toBe(false);
    expect(health.admit("two").admitted).toBe(true);
  });

  test("takes a refusal of the request for a sign of life", async () => {
    const { health, enter } = observed();
    await enter().failed(busy);
    await enter().failed(wrong);
    await enter().failed(busy);
    expect(health.read("one").retryAfterMs).toBe(0);
  });

  test("takes nothing from an attempt that was given up", async () => {
    const { health, enter } = observed();
    await enter().failed(busy);
    enter().givenUp();
    await enter().failed(busy);
    expect(health.read("one").retryAfterMs).toBeGreaterThan(0);
    expect(health.read("one").firstOutputMs).toBeUndefined();
  });

  test("counts failures after the first output, if another endpoint could have mended them", async () => {
    const { health } = observed();
    for (let times = 0; times < 5; times++) await health.recordFailure("one", wrong);
    expect(health.read("one").retryAfterMs).toBe(0);
    for (let times = 0; times < 2; times++) await health.recordFailure("one", busy);
    expect(health.read("one").retryAfterMs).toBeGreaterThan(0);
  });
});
