import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ProviderError } from "../contract.ts";
import { type AdmittedAttempt, EndpointHealth } from "./endpoint-health.ts";

function observed() {
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const health = new EndpointHealth({ clock, breaker: { failuresToOpen: 2, openMs: 60_000 } });
  const enter = (id = "one", key?: string): AdmittedAttempt => {
    const admission = health.admit(id, key);
    if (!admission.admitted) throw new Error("not admitted");
    return admission.attempt;
  };
  const pass = (milliseconds: number) => {
    nowMs += milliseconds;
    vi.setSystemTime(Date.now() + milliseconds);
  };
  return { health, enter, pass };
}

const busy = new ProviderError("overloaded", "busy");
const limited = new ProviderError("overloaded", "limited", { status: 429 });
const wrong = new ProviderError("invalid_request", "wrong");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("EndpointHealth", () => {
  test("takes an endpoint never tried for healthy and of unknown speed", () => {
    expect(observed().health.read("one")).toEqual({
      retryAfterMs: 0,
      recentOutage: false,
      firstOutputMs: undefined,
      unitsPerSecond: undefined,
    });
    expect(observed().health.outcomes("one")).toEqual({ ended: 0, failed: 0 });
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
    for (const nonsense of [0, -1, Number.NaN, Infinity]) health.recordAnswer(nonsense, "one");
    expect(health.read("one").unitsPerSecond).toBeUndefined();
    health.recordAnswer(50, "one");
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

  test("rests an endpoint that has first outputs and always breaks off after them", async () => {
    const { health, enter } = observed();
    for (let times = 0; times < 2; times++) {
      await enter().succeeded(100);
      await health.recordFailure(busy, "one");
    }
    expect(health.admit("one").admitted).toBe(false);
  });

  test("counts failures after the first output, if another endpoint could have mended them", async () => {
    const { health } = observed();
    for (let times = 0; times < 5; times++) await health.recordFailure(wrong, "one");
    expect(health.read("one").retryAfterMs).toBe(0);
    for (let times = 0; times < 2; times++) await health.recordFailure(busy, "one");
    expect(health.read("one").retryAfterMs).toBeGreaterThan(0);
  });
});

describe("an outage of the last 30 s", () => {
  test("is a fifth of what ended then, before the first output or after it", async () => {
    const { health, enter, pass } = observed();
    for (let times = 0; times < 9; times++) health.recordAnswer(1, "one");
    await enter().failed(busy);
    expect(health.read("one").recentOutage).toBe(false);
    await health.recordFailure(busy, "one");
    health.recordAnswer(1, "one");
    await enter().failed(busy);
    expect(health.outcomes("one")).toEqual({ ended: 13, failed: 3 });
    expect([health.read("one").recentOutage, health.read("two").recentOutage]).toEqual([true, false]);
    pass(40_000);
    expect(health.read("one").recentOutage).toBe(false);
    expect([health.outcomes("one"), health.outcomes("one", 30_000).ended]).toEqual([
      { ended: 13, failed: 3 },
      0,
    ]);
  });

  test("is a breaker that opened, whatever went well before", async () => {
    const { health, enter, pass } = observed();
    for (let times = 0; times < 100; times++) health.recordAnswer(1, "one");
    for (let times = 0; times < 2; times++) await enter().failed(busy);
    expect(health.read("one").recentOutage).toBe(true);
    pass(40_000);
    expect(health.read("one").recentOutage).toBe(false);
  });

  test("is neither what the caller got wrong nor what we gave up", async () => {
    const { health, enter } = observed();
    await enter().failed(wrong);
    await health.recordFailure(wrong, "one");
    enter().givenUp();
    expect([health.read("one").recentOutage, health.outcomes("one")]).toEqual([
      false,
      { ended: 2, failed: 0 },
    ]);
  });
});

describe("of several keys at one endpoint", () => {
  test.each([limited, new ProviderError("credentials", "refused", { status: 401 })])(
    "one rests alone after $kind",
    async (error) => {
      const { health, enter } = observed();
      await enter("one", "key 0").failed(error);
      expect([health.read("one", "key 0").recentOutage, health.read("one", "key 1").recentOutage]).toEqual([
        true,
        false,
      ]);
      await health.recordFailure(error, "one", "key 0");
      await enter("one", "key 0").failed(error);
      expect(health.admit("one", "key 0").admitted).toBe(false);
      expect([health.admit("one", "key 1").admitted, health.read("one").retryAfterMs]).toEqual([true, 0]);
    },
  );

  test("none is let in after other failures, whichever key met them", async () => {
    const { health, enter } = observed();
    await enter("one", "key 0").failed(busy);
    await enter("one", "key 1").failed(busy);
    for (const key of ["key 0", "key 1", "key 2"]) expect(health.admit("one", key).admitted).toBe(false);
    expect(health.admit("two", "key 0").admitted).toBe(true);
  });

  test("all give the endpoint its speed", async () => {
    const { health, enter } = observed();
    await enter("one", "key 0").succeeded(100);
    health.recordAnswer(7, "one", "key 1");
    expect(health.read("one", "key 2")).toMatchObject({ firstOutputMs: 100, unitsPerSecond: 7 });
  });

  test("a trial of one that is given up lets another try", async () => {
    const { health, enter, pass } = observed();
    for (let times = 0; times < 2; times++) await enter("one", "key 0").failed(busy);
    pass(60_000);
    enter("one", "key 0").givenUp();
    await enter("one", "key 1").failed(limited);
    expect(health.admit("one", "key 2").admitted).toBe(true);
  });
});
