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

  describeCeilings(open);
  describeEntering(open);
}

function describeCeilings(open: OpenLimiter): void {
  describe("the operator's ceilings", () => {
    test("hold whatever a key was given", async () => {
      const limiter = await open({ perMinute: 2, maxPerMinute: 5, maxInFlight: many });
      const given = await admitAtOnce([limiter], 20, { bucket: "a", perMinute: 9 });
      expect(given.admissions.length).toBe(5);
      await limiter.close();
    });

    test("hold for all keys of an account together, and for each account apart", async () => {
      const limiter = await open({ perMinute: 4, accountPerMinute: 10, maxInFlight: many });
      const admitted = async (account: string, bucket: string) =>
        (await admitAtOnce([limiter], 6, { account, bucket })).admissions.length;
      expect([await admitted("x", "a"), await admitted("x", "b"), await admitted("x", "c")]).toEqual([
        4, 4, 2,
      ]);
      const refusal = await refusalOf(limiter.admit({ account: "x", bucket: "d" }));
      expect(refusal.reason).toBe(ErrorReason.RATE_LIMITED);
      expect(refusal.retryAfterMs).toBeGreaterThan(0);
      expect(await admitted("y", "e")).toBe(4);
      await limiter.close();
    });
  });
}

function describeEntering(open: OpenLimiter): void {
  describe("a request that goes on elsewhere", () => {
    const request = { bucket: "a", account: "x" };

    test.for([["where it was admitted first"], ["where it went on first"]] as const)(
      "counts once, until both have let go: %s",
      async ([order]) => {
        const limiter = await open({ perMinute: many, maxInFlight: 1 });
        const admitted = await limiter.admit(request);
        const entered = await limiter.enter(request, admitted.id);
        expect(entered.id).toBe(admitted.id);
        const [first, second] = order.includes("admitted") ? [admitted, entered] : [entered, admitted];
        first.release();
        expect((await refusalOf(limiter.admit(request))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
        second.release();
        await waitUntil(() => limiter.admit(request));
        await limiter.close();
      },
    );

    test("comes in however full it is, and counts no minute", async () => {
      const limiter = await open({ perMinute: 3, maxInFlight: 3 });
      const { admissions } = await admitAtOnce([limiter], 3, request);
      for (const { id } of admissions) await limiter.enter(request, id);
      for (const { release } of admissions) release();
      expect((await refusalOf(limiter.enter(request, "another"))).reason).toBe(
        ErrorReason.TOO_MANY_IN_FLIGHT,
      );
      await limiter.close();
    });

    test("takes a place of its own when nobody holds it any more, or it names none", async () => {
      const limiter = await open({ perMinute: many, maxInFlight: 2 });
      const gone = await limiter.admit(request);
      gone.release();
      const again = await limiter.enter(request, gone.id);
      await limiter.enter(request, undefined);
      const refusal = await refusalOf(limiter.enter(request, undefined));
      expect([refusal.reason, refusal.retryAfterMs]).toEqual([ErrorReason.TOO_MANY_IN_FLIGHT, 1000]);
      again.release();
      await waitUntil(() => limiter.enter(request, undefined));
      await limiter.close();
    });
  });
}
