import { expect, test, vi } from "vitest";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { createLog } from "../runtime/log.ts";
import { cachedRead } from "./metrics-cache.ts";

function setUp(read: () => Promise<number>, timeoutMs = 1000) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log = createLog({
    name: "sample",
    level: "info",
    destination: { write: (line) => lines.push(line) },
  });
  const reading = vi.fn(read);
  return { clock, lines, reading, cached: cachedRead(reading, { name: "sample", log, clock, timeoutMs }) };
}

test("reads once for all who ask at once and for a while after", async () => {
  let value = 1;
  const { clock, reading, cached } = setUp(async () => value);
  expect(await Promise.all([cached(), cached()])).toEqual([1, 1]);
  value = 2;
  clock.advance(4999);
  expect(await cached()).toBe(1);
  expect(reading).toHaveBeenCalledTimes(1);
  clock.advance(2);
  expect(await cached()).toBe(2);
  expect(reading).toHaveBeenCalledTimes(2);
});

test("gives nothing while it fails, says so once, and asks no more often", async () => {
  let away = true;
  const { clock, lines, reading, cached } = setUp(async () => {
    if (away) throw new Error("away");
    return 3;
  });
  for (let time = 0; time < 3; time++) {
    expect(await cached()).toBeUndefined();
    expect(await cached()).toBeUndefined();
    clock.advance(5001);
  }
  expect(reading).toHaveBeenCalledTimes(3);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("figures can't be read");
  away = false;
  expect(await cached()).toBe(3);
});

test("waits no longer than its deadline and does not ask again while an answer is due", async () => {
  const answer = Promise.withResolvers<number>();
  const { reading, cached } = setUp(() => answer.promise, 10);
  expect(await cached()).toBeUndefined();
  expect(await cached()).toBeUndefined();
  expect(reading).toHaveBeenCalledTimes(1);
  answer.resolve(4);
  expect(await cached()).toBe(4);
  expect(reading).toHaveBeenCalledTimes(1);
});
