import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { LoopDelay } from "./loop-delay.ts";

const nsPerMs = 1e6;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Lets so many looks come, each so late. */
function look(clock: ManualClock, times: number, lateMs: number): void {
  for (let time = 0; time < times; time += 1) {
    clock.advance(50 + lateMs);
    vi.advanceTimersByTime(50);
  }
}

test("has no timer unless work runs, and one however much does", () => {
  const delay = new LoopDelay();
  expect(vi.getTimerCount()).toBe(0);
  delay.begin();
  delay.begin();
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(500);
  expect(vi.getTimerCount()).toBe(1);
  delay.end();
  expect(vi.getTimerCount()).toBe(1);
  delay.end();
  expect(vi.getTimerCount()).toBe(0);
});

test("lasts when every one of the last looks was late, and is over with the first that was not", () => {
  const clock = new ManualClock();
  const delay = new LoopDelay(clock);
  delay.begin();
  look(clock, 4, 300);
  expect(delay.lastingMs).toBe(0);
  look(clock, 1, 200);
  expect(delay.lastingMs).toBe(200);
  look(clock, 1, 3);
  expect(delay.lastingMs).toBe(3);
  delay.end();
  delay.begin();
  expect(delay.lastingMs).toBe(0);
});

test("reports what was seen since it was asked last", () => {
  const clock = new ManualClock();
  const delay = new LoopDelay(clock);
  expect(delay.takeStats()).toEqual({ p50: 0, p99: 0, max: 0 });
  delay.begin();
  look(clock, 9, 10);
  look(clock, 1, 500);
  const { p50, p99, max } = delay.takeStats();
  expect(p50 / nsPerMs).toBeCloseTo(10, 0);
  expect(p99).toBe(max);
  expect(max / nsPerMs).toBeCloseTo(500, -1);
  expect(delay.takeStats().max).toBe(0);
});
