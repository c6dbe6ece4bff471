import fc from "fast-check";
import { expect, test } from "vitest";
import { KafkaLag } from "./kafka-lag.ts";

test("is unknown until something is known of each partition, and zero without any", () => {
  const lag = new KafkaLag();
  expect(lag.value).toBe(0);
  lag.assign([0, 1]);
  expect(lag.value).toBeUndefined();
  lag.measure([{ partition: 0, start: 0n, end: 7n, committed: 5n }]);
  expect(lag.value).toBeUndefined();
  lag.advance(1, 10n, 4n);
  expect(lag.value).toBe(8);
});

test("counts from the oldest message for a group that never committed, or has fallen behind it", () => {
  const lag = new KafkaLag();
  lag.assign([0, 1]);
  lag.measure([
    { partition: 0, start: 40n, end: 50n, committed: -1n },
    { partition: 1, start: 40n, end: 50n, committed: 12n },
    { partition: 2, start: 0n, end: 99n, committed: 0n },
  ]);
  expect(lag.value).toBe(20);
});

test("a new assignment forgets what others may have done since", () => {
  const lag = new KafkaLag();
  lag.assign([0]);
  lag.advance(0, 10n, 10n);
  expect(lag.value).toBe(0);
  lag.assign([0]);
  expect(lag.value).toBeUndefined();
});

test("an older measure does not undo what the member has done, in whatever order they come", () => {
  const step = fc.record({ end: fc.nat(100), next: fc.nat(100), measured: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1 }), (steps) => {
      const lag = new KafkaLag();
      lag.assign([3]);
      for (const { end, next, measured } of steps) {
        if (measured) lag.measure([{ partition: 3, start: 0n, end: BigInt(end), committed: BigInt(next) }]);
        else lag.advance(3, BigInt(end), BigInt(next));
      }
      const furthest = (field: "end" | "next") => Math.max(...steps.map((given) => given[field]));
      expect(lag.value).toBe(Math.max(0, furthest("end") - furthest("next")));
    }),
  );
});
