import fc from "fast-check";
import { expect, test } from "vitest";
import { longestSpanMs, RollingOutcomes } from "./rolling-outcomes.ts";

test("counts what ended within the span, and what failed of it, to 5 s", () => {
  const pauses = fc.oneof(fc.nat(10_000), fc.nat(2 * longestSpanMs));
  const spans = fc.constantFrom(30_000, 300_000, longestSpanMs - 5_000);
  fc.assert(
    fc.property(fc.nat(), fc.array(fc.tuple(pauses, fc.boolean())), spans, (startMs, ends, spanMs) => {
      const outcomes = new RollingOutcomes();
      const added: { readonly atMs: number; readonly failed: boolean }[] = [];
      let nowMs = startMs;
      for (const [pauseMs, failed] of ends) {
        nowMs += pauseMs;
        outcomes.add(failed, nowMs);
        added.push({ atMs: nowMs, failed });
        const within = (ms: number) => added.filter(({ atMs }) => nowMs - atMs <= ms);
        const count = outcomes.count(spanMs, nowMs);
        expect(count.ended).toBeGreaterThanOrEqual(within(spanMs).length);
        expect(count.ended).toBeLessThanOrEqual(within(spanMs + 5_000).length);
        expect(count.failed).toBeGreaterThanOrEqual(within(spanMs).filter(({ failed: bad }) => bad).length);
        expect(count.failed).toBeLessThanOrEqual(count.ended);
      }
      expect(outcomes.count(spanMs, nowMs + longestSpanMs + 5_000)).toEqual({ ended: 0, failed: 0 });
    }),
  );
});
