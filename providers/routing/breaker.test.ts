import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Breaker, type BreakerPass } from "./breaker.ts";

const openMs = 10_000;
let breaker: Breaker;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 });
  breaker = new Breaker({ failuresToOpen: 3, openMs });
});
afterEach(() => {
  vi.useRealTimers();
});

function enter(): BreakerPass {
  const admission = breaker.admit();
  if (!admission.admitted) throw new Error("not admitted");
  return admission.pass;
}

async function fail(times: number): Promise<void> {
  for (let done = 0; done < times; done++) await enter().failed();
}

async function breakOff(times: number): Promise<void> {
  for (let done = 0; done < times; done++) {
    await enter().succeeded();
    await breaker.brokeOff();
  }
}

const pass = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds);
const refused = (retryAfterMs: number) => ({ admitted: false, retryAfterMs });

describe("closed", () => {
  test("lets any number in at once", () => {
    for (let times = 0; times < 100; times++) expect(breaker.admit().admitted).toBe(true);
  });

  test("stays closed while a success comes between failures", async () => {
    for (let times = 0; times < 5; times++) {
      await fail(2);
      await enter().succeeded();
    }
    expect(breaker.retryAfterMs).toBe(0);
  });

  test("takes what was given up as neither", async () => {
    await fail(2);
    enter().givenUp();
    expect(breaker.retryAfterMs).toBe(0);
    await fail(1);
    expect(breaker.retryAfterMs).toBe(openMs);
  });

  test("counts what each attempt says first, and only that", async () => {
    const attempt = enter();
    await attempt.failed();
    await attempt.failed();
    await attempt.succeeded();
    attempt.givenUp();
    await fail(1);
    expect(breaker.retryAfterMs).toBe(0);
    await fail(1);
    expect(breaker.retryAfterMs).toBe(openMs);
  });

  test("opens when answers in a row break off, each of which had its first output", async () => {
    await breakOff(2);
    expect([breaker.retryAfterMs, breaker.openedWithin(Infinity)]).toEqual([0, false]);
    await breakOff(1);
    expect([breaker.retryAfterMs, breaker.openedWithin(1)]).toEqual([openMs, true]);
  });

  test("stays closed while a whole answer comes between those that break off", async () => {
    for (let times = 0; times < 5; times++) {
      await breakOff(2);
      breaker.ended();
    }
    expect(breaker.retryAfterMs).toBe(0);
  });
});

describe("open", () => {
  test("lets nobody in until its time is over, and says how long that is", async () => {
    await fail(3);
    expect(breaker.admit()).toEqual(refused(openMs));
    pass(openMs - 1);
    expect(breaker.admit()).toEqual(refused(1));
    pass(1);
    expect(breaker.retryAfterMs).toBe(0);
    expect(breaker.admit().admitted).toBe(true);
  });

  test("is not kept open or closed by attempts that began before", async () => {
    const [early, earlier] = [enter(), enter()];
    await fail(3);
    pass(1000);
    await early.failed();
    await earlier.succeeded();
    expect(breaker.retryAfterMs).toBe(openMs - 1000);
  });
});

describe("after its time", () => {
  let trial: BreakerPass;
  beforeEach(async () => {
    await fail(3);
    pass(openMs);
    trial = enter();
  });

  test("lets one in alone", () => {
    expect(breaker.admit().admitted).toBe(false);
    expect(breaker.retryAfterMs).toBeGreaterThan(0);
  });

  test("closes when the trial succeeds", async () => {
    await trial.succeeded();
    expect([breaker.admit().admitted, breaker.admit().admitted]).toEqual([true, true]);
    await fail(2);
    expect(breaker.retryAfterMs).toBe(0);
  });

  test("opens again at the next break where breaks had opened it, until an answer is whole", async () => {
    await trial.succeeded();
    await breakOff(3);
    pass(openMs);
    expect(breaker.openedWithin(openMs)).toBe(false);
    await breakOff(1);
    expect(breaker.retryAfterMs).toBe(openMs);
    pass(openMs);
    await enter().succeeded();
    breaker.ended();
    await breakOff(2);
    expect(breaker.retryAfterMs).toBe(0);
  });

  test("opens again at once when the trial fails", async () => {
    await trial.failed();
    expect(breaker.admit()).toEqual(refused(openMs));
    pass(openMs);
    await enter().succeeded();
    expect(breaker.retryAfterMs).toBe(0);
  });

  test("lets the next one try when the trial is given up", async () => {
    trial.givenUp();
    const next = enter();
    expect(breaker.admit().admitted).toBe(false);
    await next.failed();
    expect(breaker.retryAfterMs).toBe(openMs);
  });
});
