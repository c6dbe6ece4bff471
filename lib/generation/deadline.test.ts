import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Deadline } from "./deadline.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const totalMs = 10_000;
const idleMs = 1_000;

function start(parent = new AbortController()) {
  const deadline = new Deadline(parent.signal, totalMs, idleMs);
  return { parent, deadline };
}

const never = new Promise<never>(() => undefined);

describe("a deadline", () => {
  test("fires after the whole time, whatever happens meanwhile", async () => {
    const { deadline } = start();
    for (let elapsedMs = 0; elapsedMs < totalMs - 500; elapsedMs += 500) {
      await deadline.waitFor(Promise.resolve());
      vi.advanceTimersByTime(500);
    }
    expect([deadline.signal.aborted, deadline.timedOut]).toEqual([false, false]);
    vi.advanceTimersByTime(500);
    expect([deadline.signal.aborted, deadline.timedOut]).toEqual([true, true]);
    expect(deadline.signal.reason).toMatchObject({ name: "TimeoutError" });
  });

  test("fires when the upstream is silent for too long", () => {
    const { deadline } = start();
    void deadline.waitFor(never);
    vi.advanceTimersByTime(idleMs - 1);
    expect(deadline.timedOut).toBe(false);
    vi.advanceTimersByTime(1);
    expect([deadline.signal.aborted, deadline.timedOut]).toEqual([true, true]);
  });

  test("does not count the time between two waits, and gives each its full time", async () => {
    const { deadline } = start();
    vi.advanceTimersByTime(idleMs * 2);
    await deadline.waitFor(Promise.resolve());
    vi.advanceTimersByTime(idleMs * 2);
    void deadline.waitFor(never);
    vi.advanceTimersByTime(idleMs - 1);
    expect(deadline.timedOut).toBe(false);
    vi.advanceTimersByTime(1);
    expect(deadline.timedOut).toBe(true);
  });

  test("starts anew with every wait", async () => {
    const { deadline } = start();
    for (let turn = 0; turn < 5; turn++) {
      const output = Promise.withResolvers<number>();
      const waited = deadline.waitFor(output.promise);
      vi.advanceTimersByTime(idleMs - 1);
      output.resolve(turn);
      expect(await waited).toBe(turn);
    }
    expect(deadline.timedOut).toBe(false);
  });

  test("does not count on after a wait that failed", async () => {
    const { deadline } = start();
    await expect(deadline.waitFor(Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    vi.advanceTimersByTime(idleMs * 2);
    expect(deadline.timedOut).toBe(false);
  });

  test("follows its parent, with the parent's reason, and is no time-out then", () => {
    const { parent, deadline } = start();
    void deadline.waitFor(never);
    parent.abort(new Error("gone"));
    expect(deadline.signal.reason).toEqual(new Error("gone"));
    vi.advanceTimersByTime(totalMs);
    expect(deadline.timedOut).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("has fired at once where its parent has", () => {
    const { deadline } = start();
    const parent = new AbortController();
    parent.abort();
    const late = new Deadline(parent.signal, totalMs, idleMs);
    expect([late.signal.aborted, late.timedOut]).toEqual([true, false]);
    deadline.end();
    late.end();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("stays a time-out when the caller leaves afterwards", () => {
    const { parent, deadline } = start();
    vi.advanceTimersByTime(totalMs);
    parent.abort();
    expect(deadline.timedOut).toBe(true);
    expect(deadline.signal.reason).toMatchObject({ name: "TimeoutError" });
  });
});

describe("work that outlasts its caller", () => {
  test("goes on when the caller leaves, within its time limits", () => {
    const { parent, deadline } = start();
    deadline.outlastCaller();
    parent.abort();
    expect([deadline.signal.aborted, deadline.endedByCaller]).toEqual([false, false]);
    vi.advanceTimersByTime(totalMs);
    expect([deadline.timedOut, deadline.endedByCaller]).toEqual([true, false]);
  });

  test("ends with a caller who has left once it is to follow him again", () => {
    const { parent, deadline } = start();
    deadline.outlastCaller();
    parent.abort(new Error("gone"));
    deadline.followCaller();
    expect(deadline.signal.reason).toEqual(new Error("gone"));
    expect([deadline.endedByCaller, deadline.endedWellByCaller, deadline.timedOut]).toEqual([
      true,
      false,
      false,
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.for(["before", "after"] as const)(
    "ends well when the caller leaves %s its outcome is known",
    (when) => {
      const { parent, deadline } = start();
      deadline.outlastCaller();
      if (when === "before") parent.abort();
      deadline.outcomeKnown();
      if (when === "after") parent.abort();
      expect([deadline.signal.aborted, deadline.endedWellByCaller]).toEqual([true, true]);
    },
  );

  test("is not ended by a caller after it has finished", () => {
    const { parent, deadline } = start();
    deadline.outlastCaller();
    deadline.finish();
    parent.abort();
    deadline.followCaller();
    expect([deadline.signal.aborted, deadline.endedByCaller]).toEqual([false, false]);
  });
});

describe("the end of a deadline", () => {
  test("ends what follows the signal, as no time-out, and leaves nothing behind", () => {
    const { parent, deadline } = start();
    deadline.end();
    deadline.end();
    expect([deadline.signal.aborted, deadline.timedOut]).toEqual([true, false]);
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  });

  test("ends nothing once the work has finished by itself, and leaves nothing behind", () => {
    const { parent, deadline } = start();
    deadline.finish();
    deadline.end();
    parent.abort();
    expect(deadline.signal.aborted).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  });
});

test("a deadline without an idle limit waits as long as there is time in all", () => {
  const deadline = new Deadline(new AbortController().signal, totalMs);
  void deadline.waitFor(never);
  vi.advanceTimersByTime(totalMs - 1);
  expect(deadline.timedOut).toBe(false);
  vi.advanceTimersByTime(1);
  expect(deadline.timedOut).toBe(true);
});
