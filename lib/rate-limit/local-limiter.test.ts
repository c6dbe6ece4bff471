import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { admitAtOnce, describeRequestLimiter, refusalOf } from "./limiter.suite.ts";
import type { Admission } from "./limiter.ts";
import { LocalCounts } from "./local-counts.ts";
import { LocalLimiter } from "./local-limiter.ts";

describe("within one process", () => {
  describeRequestLimiter(async (limits, windowMs) => {
    return new LocalLimiter({ limits, ...(windowMs === undefined ? {} : { windowMs }) });
  });
});

describe("the window of a bucket", () => {
  test("begins with its first request and lasts a minute", async () => {
    const clock = new ManualClock();
    const limiter = new LocalLimiter({ limits: { perMinute: 600, maxInFlight: 10_000 }, clock });
    const request = { bucket: "a" };
    clock.advance(12_345);
    await limiter.admit(request);
    clock.advance(50_000);
    expect((await admitAtOnce([limiter], 700, request)).admissions.length).toBe(599);
    clock.advance(9_999);
    expect(await refusalOf(limiter.admit(request))).toMatchObject({
      reason: ErrorReason.RATE_LIMITED,
      retryAfterMs: 1,
    });
    clock.advance(1);
    expect((await admitAtOnce([limiter], 700, request)).admissions.length).toBe(600);
    expect((await refusalOf(limiter.admit(request))).retryAfterMs).toBe(60_000);
  });

  test("comes before what is in flight when both are used up", async () => {
    const limiter = new LocalLimiter({ limits: { perMinute: 1, maxInFlight: 1 } });
    await limiter.admit({ bucket: "a" });
    expect((await refusalOf(limiter.admit({ bucket: "a" }))).reason).toBe(ErrorReason.RATE_LIMITED);
  });

  test("lets no order of requests, ends and time break a limit or refuse below it", async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("come" as const), bucket: fc.constantFrom("a", "b") }),
      fc.record({ kind: fc.constant("end" as const), pick: fc.nat() }),
      fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 70_000 }) }),
    );
    const limits = fc.record({
      perMinute: fc.integer({ min: 1, max: 6 }),
      maxInFlight: fc.integer({ min: 1, max: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { maxLength: 60 }), async (limits, steps) => {
        const clock = new ManualClock();
        const limiter = new LocalLimiter({ limits, clock });
        const windows: Record<string, { beganMs: number; count: number }> = {};
        let running: { bucket: string; admission: Admission }[] = [];
        for (const step of steps) {
          if (step.kind === "wait") clock.advance(step.ms);
          if (step.kind === "end" && running.length > 0) {
            const ended = running[step.pick % running.length];
            ended?.admission.release();
            running = running.filter((other) => other !== ended);
          }
          if (step.kind !== "come") continue;
          const { bucket } = step;
          const window = windows[bucket];
          const open = window !== undefined && clock.nowMs() < window.beganMs + 60_000;
          const inFlight = running.filter((other) => other.bucket === bucket).length;
          const expected = (open ? window.count : 0) < limits.perMinute && inFlight < limits.maxInFlight;
          const admission = await limiter.admit({ bucket }).catch(() => undefined);
          expect(admission !== undefined).toBe(expected);
          if (admission === undefined) continue;
          running.push({ bucket, admission });
          if (open) window.count += 1;
          else windows[bucket] = { beganMs: clock.nowMs(), count: 1 };
        }
      }),
    );
  });
});

describe("what a process remembers", () => {
  const limits = { perMinute: 1, maxInFlight: 1 };

  function begin(counts: LocalCounts, bucket: string): void {
    counts.begin({ bucket });
    counts.hold(bucket, "id");
  }

  test("goes with the windows that have ended and the requests that have", () => {
    const clock = new ManualClock();
    const counts = new LocalCounts({ clock });
    for (let index = 0; index < 1000; index += 1) begin(counts, `bucket-${index}`);
    for (let index = 0; index < 1000; index += 1) counts.letGo(`bucket-${index}`, "id");
    expect(counts.size).toEqual({ windows: 1000, inFlight: 0 });
    clock.advance(60_000);
    begin(counts, "another");
    expect(counts.size).toEqual({ windows: 1, inFlight: 1 });
  });

  test("is bounded: the oldest window makes room, and what is in flight stays", () => {
    const counts = new LocalCounts({ clock: new ManualClock(), maxWindows: 3 });
    for (const bucket of ["a", "b", "c", "d"]) begin(counts, bucket);
    expect(counts.size).toEqual({ windows: 3, inFlight: 4 });
    expect(counts.refusal({ bucket: "d" }, limits)?.reason).toBe(ErrorReason.RATE_LIMITED);
    expect(counts.refusal({ bucket: "a" }, limits)?.reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    counts.letGo("a", "id");
    expect(counts.refusal({ bucket: "a" }, limits)).toBeUndefined();
  });
});
