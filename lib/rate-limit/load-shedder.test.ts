import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { LoadShedder, type LoadShedderOptions } from "./load-shedder.ts";

/** An event loop that is as late as the test says. */
class PlayedDelay {
  running = 0;
  lastingMs = 0;

  begin(): void {
    this.running += 1;
  }

  end(): void {
    this.running -= 1;
  }
}

function shedderFor(options: Partial<LoadShedderOptions> = {}) {
  const loopDelay = new PlayedDelay();
  const shedder = new LoadShedder({ maxInFlight: 2, maxDelayMs: 100, loopDelay, ...options });
  return { loopDelay, shedder };
}

function refusalOf(admission: Promise<unknown>): Promise<DomainError> {
  return admission.then(
    () => Promise.reject(new Error("it was let in")),
    (thrown: unknown) => DomainError.from(thrown),
  );
}

describe("what a process carries", () => {
  test("is let in up to its bound, the rest refused at once where none may wait", async () => {
    const { shedder } = shedderFor({ maxWaiting: 0, random: () => 0.5 });
    const end = await shedder.admit("a");
    await shedder.admit("b");
    const refusal = await refusalOf(shedder.admit("c"));
    expect([refusal.reason, refusal.retryAfterMs]).toEqual([ErrorReason.OVERLOADED, 2000]);
    end();
    end();
    await shedder.admit("c");
    expect(shedder.refused).toEqual({ requests: 1, loop_delay: 0 });
    expect(await refusalOf(shedder.admit("d"))).toMatchObject({ reason: ErrorReason.OVERLOADED });
  });

  test("counts once under one id, until all who hold it have let go", async () => {
    const { shedder } = shedderFor({ maxInFlight: 1, maxWaiting: 0 });
    const ends = [await shedder.admit("a"), await shedder.admit("a")];
    expect(shedder.running).toBe(1);
    ends[0]?.();
    await refusalOf(shedder.admit("b"));
    ends[1]?.();
    await shedder.admit("b");
  });

  test("is let in in the order in which it came, once there is a place", async () => {
    const { shedder } = shedderFor({ maxInFlight: 1, maxWaiting: 3, maxWaitMs: 60_000 });
    const order: string[] = [];
    const end = await shedder.admit("first");
    const waiting = ["a", "b", "c"].map((id) =>
      shedder.admit(id).then((leave) => {
        order.push(id);
        leave();
      }),
    );
    expect((await refusalOf(shedder.admit("d"))).reason).toBe(ErrorReason.OVERLOADED);
    end();
    await Promise.all(waiting);
    expect(order).toEqual(["a", "b", "c"]);
  });

  test("waits no longer than it may, and its place in the line is free then", async () => {
    const { shedder } = shedderFor({ maxInFlight: 1, maxWaiting: 1, maxWaitMs: 1 });
    const end = await shedder.admit("first");
    expect((await refusalOf(shedder.admit("a"))).reason).toBe(ErrorReason.OVERLOADED);
    expect((await refusalOf(shedder.admit("b"))).reason).toBe(ErrorReason.OVERLOADED);
    end();
    await shedder.admit("c");
    expect(shedder.running).toBe(1);
  });

  test("loses those who leave while they wait", async () => {
    const { shedder } = shedderFor({ maxInFlight: 1, maxWaiting: 1, maxWaitMs: 60_000 });
    const end = await shedder.admit("first");
    const leaving = new AbortController();
    const refusal = refusalOf(shedder.admit("a", leaving.signal));
    leaving.abort();
    expect((await refusal).reason).toBe(ErrorReason.CANCELLED);
    expect((await refusalOf(shedder.admit("b", AbortSignal.abort()))).reason).toBe(ErrorReason.CANCELLED);
    end();
    expect(shedder.running).toBe(0);
  });

  test("is nothing more while the event loop is late, and all goes on that runs", async () => {
    const { shedder, loopDelay } = shedderFor({ maxInFlight: 10 });
    await shedder.admit("a");
    loopDelay.lastingMs = 100;
    expect((await refusalOf(shedder.admit("b"))).reason).toBe(ErrorReason.OVERLOADED);
    expect(shedder.refused).toEqual({ requests: 0, loop_delay: 1 });
    await shedder.admit("a");
    loopDelay.lastingMs = 99;
    await shedder.admit("b");
  });

  test("looks at the event loop exactly while something runs", async () => {
    const { shedder, loopDelay } = shedderFor({ maxInFlight: 1, maxWaiting: 0 });
    const end = await shedder.admit("a");
    await refusalOf(shedder.admit("b"));
    expect(loopDelay.running).toBe(1);
    end();
    expect(loopDelay.running).toBe(0);
  });

  test("is never more than its bound and never kept waiting below it, in whatever order all comes", async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("come" as const), leaves: fc.boolean() }),
      fc.record({ kind: fc.constant("end" as const), pick: fc.nat() }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 50 }), async (steps) => {
        const { shedder } = shedderFor({ maxInFlight: 3, maxWaiting: 4, maxWaitMs: 60_000 });
        const ends: (() => void)[] = [];
        let waiting = 0;
        for (const [index, each] of steps.entries()) {
          if (each.kind === "end") ends.splice(each.pick % Math.max(1, ends.length), 1)[0]?.();
          else {
            const leaving = new AbortController();
            waiting += 1;
            shedder
              .admit(`${index}`, leaving.signal)
              .then((end) => ends.push(end))
              .catch(() => undefined)
              .finally(() => {
                waiting -= 1;
              });
            if (each.leaves) leaving.abort();
          }
          await new Promise((resolve) => setImmediate(resolve));
          expect(shedder.running).toBe(ends.length);
          expect(shedder.running).toBeLessThanOrEqual(3);
          if (waiting > 0) expect(shedder.running).toBe(3);
        }
        for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
          end();
          await new Promise((resolve) => setImmediate(resolve));
        }
        expect([shedder.running, waiting]).toEqual([0, 0]);
      }),
      { numRuns: 50 },
    );
  });
});
