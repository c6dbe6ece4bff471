import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { DomainError } from "../runtime/domain-error.ts";
import type { Admission, LimitedRequest, RequestLimiter, RequestLimits } from "./limiter.ts";

/** Opens a limiter that shares nothing with those that were opened before; it is closed by the caller. */
export type OpenLimiter = (limits: RequestLimits, windowMs?: number) => Promise<RequestLimiter>;

/** What becomes of requests that come at the same moment. */
export interface Outcomes {
  readonly admissions: readonly Admission[];
  readonly refusals: readonly DomainError[];
}

/** Lets `count` requests come at the same moment, to the limiters by turns. */
export async function admitAtOnce(
  limiters: readonly RequestLimiter[],
  count: number,
  request: LimitedRequest,
): Promise<Outcomes> {
  const turns = Array.from(
    { length: count },
    (_, turn) => limiters[turn % limiters.length] as RequestLimiter,
  );
  const results = await Promise.allSettled(turns.map((limiter) => limiter.admit(request)));
  return {
    admissions: results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
    refusals: results.flatMap((result) =>
      result.status === "rejected" ? [DomainError.from(result.reason)] : [],
    ),
  };
}

/** The error that a request is refused with. */
export async function refusalOf(admission: Promise<unknown>): Promise<DomainError> {
  return admission.then(
    () => Promise.reject(new Error("it was admitted")),
    (thrown: unknown) => DomainError.from(thrown),
  );
}

const many = 1_000_000;

/** What every limiter does. */
export function describeRequestLimiter(open: OpenLimiter): void {
  describe("a request limiter", () => {
    test("admits exactly as many a minute as it may, and says when to come again", async () => {
      const limiter = await open({ perMinute: 600, maxInFlight: many });
      const { admissions, refusals } = await admitAtOnce([limiter], 700, { bucket: "a" });
      expect([admissions.length, refusals.length]).toEqual([600, 100]);
      for (const { reason, retryAfterMs } of refusals) {
        expect(reason).toBe(ErrorReason.RATE_LIMITED);
        expect(retryAfterMs).toBeGreaterThan(0);
        expect(retryAfterMs).toBeLessThanOrEqual(60_000);
      }
      await limiter.close();
    });

    test("counts requests a minute whether or not they have ended", async () => {
      const limiter = await open({ perMinute: 3, maxInFlight: 1 });
      for (const _ of [1, 2, 3]) (await limiter.admit({ bucket: "a" })).release();
      expect((await refusalOf(limiter.admit({ bucket: "a" }))).reason).toBe(ErrorReason.RATE_LIMITED);
      await limiter.close();
    });

    test("starts anew when the window has ended", async () => {
      const limiter = await open({ perMinute: 2, maxInFlight: many }, 300);
      await admitAtOnce([limiter], 2, { bucket: "a" });
      expect((await refusalOf(limiter.admit({ bucket: "a" }))).retryAfterMs).toBeLessThanOrEqual(300);
      await waitUntil(() => limiter.admit({ bucket: "a" }));
      await limiter.close();
    });

    test("lets exactly as many run at once as it may", async () => {
      const limiter = await open({ perMinute: many, maxInFlight: 64 });
      const { admissions, refusals } = await admitAtOnce([limiter], 100, { bucket: "a" });
      expect(admissions.length).toBe(64);
      for (const { reason, retryAfterMs } of refusals) {
        expect([reason, retryAfterMs]).toEqual([ErrorReason.TOO_MANY_IN_FLIGHT, 1000]);
      }
      for (const { release } of admissions.slice(0, 10)) release();
      const next = await admitAtOnce([limiter], 20, { bucket: "a" });
      expect(next.admissions.length).toBe(10);
      await limiter.close();
    });

    test("takes a request for ended once, however often that is said", async () => {
      const limiter = await open({ perMinute: many, maxInFlight: 2 });
      const { admissions } = await admitAtOnce([limiter], 2, { bucket: "a" });
      for (const _ of [1, 2, 3]) admissions[0]?.release();
      expect((await admitAtOnce([limiter], 3, { bucket: "a" })).admissions.length).toBe(1);
      await limiter.close();
    });

    test("does not count what it refuses", async () => {
      const limiter = await open({ perMinute: 5, maxInFlight: 1 });
      const first = await limiter.admit({ bucket: "a" });
      await admitAtOnce([limiter], 20, { bucket: "a" });
      first.release();
      for (const _ of [2, 3, 4, 5]) (await limiter.admit({ bucket: "a" })).release();
      expect((await refusalOf(limiter.admit({ bucket: "a" }))).reason).toBe(ErrorReason.RATE_LIMITED);
      await limiter.close();
    });

    test("gives a request its own limit a minute", async () => {
      const limiter = await open({ perMinute: 2, maxInFlight: many });
      const own = await admitAtOnce([limiter], 9, { bucket: "a", perMinute: 7 });
      expect(own.admissions.length).toBe(7);
      const lower = await admitAtOnce([limiter], 9, { bucket: "b", perMinute: 1 });
      expect(lower.admissions.length).toBe(1);
      await limiter.close();
    });

    test("keeps buckets apart", async () => {
      const limiter = await open({ perMinute: 2, maxInFlight: 2 });
      for (const bucket of ["a", "b", "{a}", "a}:b"]) {
        expect((await admitAtOnce([limiter], 4, { bucket })).admissions.length).toBe(2);
      }
      await limiter.close();
    });

    test("counts nothing for a caller who has left", async () => {
      const limiter = await open({ perMinute: 1, maxInFlight: 1 });
      const refusal = await refusalOf(limiter.admit({ bucket: "a" }, AbortSignal.abort()));
      expect(refusal.reason).toBe(ErrorReason.CANCELLED);
      await limiter.admit({ bucket: "a" });
      await limiter.close();
    });
  });
}
