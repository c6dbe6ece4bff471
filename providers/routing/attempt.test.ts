import { getEventListeners } from "node:events";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { ProviderError, type ProviderErrorKind } from "../contract.ts";
import { type AttemptRecord, endAttempt, reasonOfProviderError, runAttempts } from "./attempt.ts";
import type { Admission } from "./endpoint-health.ts";

const retryable = ["credentials", "overloaded", "timeout", "network", "upstream", "bad_answer"] as const;
const final = ["invalid_request", "nothing_to_speak", "content_policy"] as const;
const timeoutMs = 1000;

/** What an endpoint does when it is tried. */
type Behaviour =
  | "speaks"
  | "hangs"
  | ProviderErrorKind
  | { throws: unknown }
  | { rests: number }
  | { lateBy: number };

/** Runs attempts over endpoints that behave so, and writes down all that happens. */
class Scene {
  readonly events: string[] = [];
  readonly records: AttemptRecord[] = [];
  readonly controller = new AbortController();
  readonly #behaviours: ReadonlyMap<string, Behaviour>;
  winnersSignal: AbortSignal | undefined;

  constructor(behaviours: Readonly<Record<string, Behaviour>>) {
    this.#behaviours = new Map(Object.entries(behaviours));
  }

  run(options: Partial<Parameters<typeof runAttempts>[0]> = {}) {
    return runAttempts({
      candidates: [...this.#behaviours.keys()].map((id) => ({
        id,
        providerSlug: id,
        providerName: id.toUpperCase(),
      })),
      attempt: ({ id }, { signal }) => this.#attempt(id, signal),
      discard: (value) => {
        this.events.push(`discard ${value}`);
      },
      firstOutputTimeoutMs: timeoutMs,
      signal: this.controller.signal,
      health: { admit: (id) => this.#admit(id) },
      clock,
      random: () => 0,
      onAttempt: (record) => this.records.push(record),
      ...options,
    });
  }

  async failure(options: Parameters<Scene["run"]>[0] = {}): Promise<DomainError> {
    return await this.run(options).then(
      () => Promise.reject(new Error("an attempt won")),
      (error: unknown) => (error instanceof DomainError ? error : Promise.reject(error)),
    );
  }

  /** The same where the time must pass in which an endpoint that was not reached is left alone. */
  async failureInTime(options: Parameters<Scene["run"]>[0] = {}): Promise<DomainError> {
    const failing = this.failure(options);
    await vi.advanceTimersByTimeAsync(timeoutMs);
    return await failing;
  }

  async #attempt(id: string, signal: AbortSignal): Promise<string> {
    const behaviour = this.#behaviours.get(id) ?? "hangs";
    this.events.push(`begin ${id}`);
    signal.addEventListener("abort", () => this.events.push(`abort ${id}`));
    if (behaviour === "speaks") {
      this.winnersSignal = signal;
      return `voice of ${id}`;
    }
    if (behaviour === "hangs") return await new Promise(() => undefined);
    if (typeof behaviour === "string") throw new ProviderError(behaviour, "upstream words", { status: 418 });
    if ("throws" in behaviour) throw behaviour.throws;
    if ("lateBy" in behaviour) await new Promise((resolve) => setTimeout(resolve, behaviour.lateBy));
    return `late voice of ${id}`;
  }

  #admit(id: string): Admission {
    const behaviour = this.#behaviours.get(id);
    if (typeof behaviour === "object" && "rests" in behaviour) {
      return { admitted: false, retryAfterMs: behaviour.rests };
    }
    let reported = false;
    const report = (word: string) => {
      if (!reported) this.events.push(`health ${id} ${word}`);
      reported = true;
    };
    return {
      admitted: true,
      attempt: {
        succeeded: async () => report("succeeded"),
        failed: async ({ kind }) => report(kind),
        givenUp: () => report("given up"),
      },
    };
  }
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the first that speaks wins", () => {
  test("and nobody after it is tried", async () => {
    const scene = new Scene({ a: "speaks", b: "speaks" });
    const { value, endpoint, attempts } = await scene.run();
    expect([value, endpoint.id]).toEqual(["voice of a", "a"]);
    expect(scene.events).toEqual(["begin a", "health a succeeded"]);
    expect(attempts).toEqual(scene.records);
    expect(attempts).toMatchObject([
      { endpoint, firstOutputMs: 0, outcome: Outcome.UNSPECIFIED, reason: undefined },
    ]);
  });

  test.each(retryable)("after one that failed with %s, whose work is ended first", async (kind) => {
    const scene = new Scene({ a: kind, b: "speaks" });
    expect((await scene.run()).value).toBe("voice of b");
    expect(scene.events).toEqual(["begin a", "abort a", `health a ${kind}`, "begin b", "health b succeeded"]);
  });

  test("after an engine that is full, which says nothing about its health", async () => {
    const scene = new Scene({ a: "engine_full", b: "speaks" });
    expect((await scene.run()).value).toBe("voice of b");
    expect(scene.events).toEqual([
      ...["begin a", "abort a", "health a given up"],
      ...["begin b", "health b succeeded"],
    ]);
  });

  test("after one that takes too long, which is not waited for", async () => {
    const scene = new Scene({ a: "hangs", b: "speaks" });
    const running = scene.run();
    await vi.advanceTimersByTimeAsync(timeoutMs - 1);
    expect(scene.events).toEqual(["begin a"]);
    await vi.advanceTimersByTimeAsync(1);
    expect((await running).endpoint.id).toBe("b");
    expect(scene.events).toEqual(["begin a", "abort a", "health a timeout", "begin b", "health b succeeded"]);
    expect(scene.records[0]).toMatchObject({
      outcome: Outcome.FAILED,
      reason: ErrorReason.TIMED_OUT,
      durationMs: timeoutMs,
    });
  });

  test("after one that rests, which is no attempt", async () => {
    const scene = new Scene({ a: { rests: 5 }, b: "speaks" });
    expect((await scene.run()).attempts.map(({ endpoint }) => endpoint.id)).toEqual(["b"]);
  });

  test("and its work is tied to the caller's signal, no longer to the time", async () => {
    const scene = new Scene({ a: "upstream", b: "speaks" });
    await scene.run();
    await vi.advanceTimersByTimeAsync(10 * timeoutMs);
    expect(scene.winnersSignal?.aborted).toBe(false);
    expect(getEventListeners(scene.controller.signal, "abort")).toHaveLength(1);
    scene.controller.abort();
    expect(scene.winnersSignal?.aborted).toBe(true);
  });

  test("and can be ended alone", async () => {
    const scene = new Scene({ a: "speaks" });
    (await scene.run()).abort();
    expect([scene.winnersSignal?.aborted, scene.controller.signal.aborted]).toEqual([true, false]);
  });
});

test("each endpoint failing in turn, the first that does not fail wins, and a final failure stops", async () => {
  const behaviour = fc.constantFrom<Behaviour>("speaks", "hangs", ...retryable, ...final, { rests: 1 });
  await fc.assert(
    fc.asyncProperty(fc.array(behaviour, { maxLength: 5 }), async (behaviours) => {
      const scene = new Scene(Object.fromEntries(behaviours.map((each, index) => [`e${index}`, each])));
      const isEnd = (each: Behaviour) => each === "speaks" || (final as readonly unknown[]).includes(each);
      const end = behaviours.findIndex(isEnd);
      const reached = (end === -1 ? behaviours : behaviours.slice(0, end + 1)).map((each, index) => ({
        each,
        id: `e${index}`,
      }));
      const tried = reached.filter(({ each }) => typeof each === "string").map(({ id }) => id);
      const last = reached.findLast(({ each }) => typeof each === "string");
      // Nothing was sent to it and nobody else is left.
      if (last?.each === "network") tried.push(last.id);
      const running = scene.run().then(
        ({ endpoint }) => endpoint.id,
        () => undefined,
      );
      await vi.advanceTimersByTimeAsync(timeoutMs * 6);
      expect(await running).toBe(behaviours[end] === "speaks" ? `e${end}` : undefined);
      expect(scene.records.map(({ endpoint }) => endpoint.id)).toEqual(tried);
      expect(scene.events.filter((event) => event.startsWith("health"))).toHaveLength(tried.length);
      expect(vi.getTimerCount()).toBe(0);
      const ties = getEventListeners(scene.controller.signal, "abort").length;
      expect(ties).toBe(behaviours[end] === "speaks" ? 1 : 0);
    }),
  );
});

describe("what comes late", () => {
  test("is discarded when it is a value, whatever discarding does", async () => {
    for (const discard of [
      () => Promise.reject(new Error("async")),
      () => {
        throw new Error("sync");
      },
    ]) {
      const scene = new Scene({ a: { lateBy: timeoutMs + 5 }, b: "speaks" });
      const discarded = vi.fn(discard);
      const running = scene.run({ discard: discarded });
      await vi.advanceTimersByTimeAsync(timeoutMs + 5);
      expect((await running).endpoint.id).toBe("b");
      expect(discarded.mock.calls).toEqual([["late voice of a"]]);
    }
  });

  test("is dropped when it is an error", async () => {
    const scene = new Scene({ a: "hangs" });
    const late = Promise.withResolvers<string>();
    const failing = scene.failure({ attempt: () => late.promise });
    await vi.advanceTimersByTimeAsync(timeoutMs);
    expect((await failing).reason).toBe(ErrorReason.TIMED_OUT);
    late.reject(new Error("nobody hears this"));
    await vi.advanceTimersByTimeAsync(1);
    expect(scene.events.filter((event) => event.startsWith("health"))).toEqual(["health a timeout"]);
  });
});

describe("a caller that goes away", () => {
  test("before the first attempt leaves no attempt", async () => {
    const scene = new Scene({ a: "speaks" });
    scene.controller.abort();
    const error = await scene.failure();
    expect([error.reason, error.attempts]).toEqual([ErrorReason.CANCELLED, []]);
    expect(scene.events).toEqual([]);
  });

  test("during an attempt ends it at once, and nobody else is tried or blamed", async () => {
    const scene = new Scene({ a: "hangs", b: "speaks" });
    const failing = scene.failure();
    await vi.advanceTimersByTimeAsync(7);
    // Transports give timeouts as reasons too; it is our deadline that decides.
    scene.controller.abort(new DOMException("late", "TimeoutError"));
    expect((await failing).reason).toBe(ErrorReason.CANCELLED);
    expect(scene.events).toEqual(["begin a", "abort a", "health a given up"]);
    expect(scene.records).toMatchObject([
      { outcome: Outcome.CANCELLED, reason: ErrorReason.CANCELLED, durationMs: 7, firstOutputMs: undefined },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("while a failure is on its way is answered with that failure, and nobody else is tried", async () => {
    const scene = new Scene({ a: "hangs", b: "speaks" });
    const error = await scene.failure({
      onAttempt: () => scene.controller.abort(),
      attempt: () => Promise.reject(new ProviderError("upstream", "broken")),
    });
    expect(error.reason).toBe(ErrorReason.PROVIDER_FAILED);
    expect(error.attempts.map(({ endpointId }) => endpointId)).toEqual(["a"]);
  });
});

describe("an attempt reports that it was sent", () => {
  test("once, when its adapter says so, and its record says it too", async () => {
    const scene = new Scene({ a: "hangs" });
    const sent: string[] = [];
    const failing = scene.failure({
      onSent: ({ id }) => sent.push(id),
      attempt: (_endpoint, { onSent }) => {
        onSent();
        onSent();
        return new Promise(() => undefined);
      },
    });
    expect(sent).toEqual(["a"]);
    scene.controller.abort();
    await failing;
    expect(scene.records).toMatchObject([{ outcome: Outcome.CANCELLED, sent: true }]);
  });

  test("with its first output at the latest", async () => {
    const sent: string[] = [];
    const scene = new Scene({ a: "speaks" });
    await scene.run({ onSent: ({ id }) => sent.push(id) });
    expect(sent).toEqual(["a"]);
    expect(scene.records).toMatchObject([{ sent: true }]);
  });

  test("not where it failed or was ended before", async () => {
    const sent: string[] = [];
    const late: (() => void)[] = [];
    const scene = new Scene({ a: "network", b: "hangs" });
    const failing = scene.failure({
      onSent: ({ id }) => sent.push(id),
      attempt: ({ id }, { onSent }) => {
        late.push(onSent);
        return id === "a"
          ? Promise.reject(new ProviderError("network", "away"))
          : new Promise(() => undefined);
      },
    });
    await vi.advanceTimersByTimeAsync(1);
    scene.controller.abort();
    await failing;
    for (const onSent of late) onSent();
    expect([sent, scene.records.map((record) => record.sent)]).toEqual([[], [false, false]]);
  });
});

describe("an endpoint that was not reached", () => {
  const unreached = () => Promise.reject(new ProviderError("network", "away"));

  test("is tried once more, after a short pause, where no other is left", async () => {
    const scene = new Scene({ a: "network" });
    let tries = 0;
    const running = scene.run({ attempt: () => (++tries === 1 ? unreached() : Promise.resolve("voice")) });
    await vi.advanceTimersByTimeAsync(1);
    expect(scene.records).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(timeoutMs);
    expect((await running).value).toBe("voice");
    expect(scene.records.map(({ endpoint, sent }) => [endpoint.id, sent])).toEqual([
      ["a", false],
      ["a", true],
    ]);
  });

  test("is not tried a third time", async () => {
    const scene = new Scene({ a: "network" });
    expect((await scene.failureInTime()).attempts).toHaveLength(2);
  });

  test("also where those that are left rest", async () => {
    const scene = new Scene({ a: "network", b: { rests: 5 } });
    await scene.failureInTime();
    expect(scene.records.map(({ endpoint }) => endpoint.id)).toEqual(["a", "a"]);
  });

  test("is not tried again while others are left, nor after their failures", async () => {
    const scene = new Scene({ a: "network", b: "upstream" });
    await scene.failureInTime();
    expect(scene.records.map(({ endpoint }) => endpoint.id)).toEqual(["a", "b"]);
  });

  test.each([
    ["had all of the request", "network", true],
    ["failed otherwise", "upstream", false],
    ["was too slow", "timeout", false],
  ] as const)("is not one that %s", async (_, kind, sent) => {
    const scene = new Scene({ a: "speaks" });
    await scene.failureInTime({
      attempt: (_endpoint, { onSent }) => {
        if (sent) onSent();
        return Promise.reject(new ProviderError(kind, "no"));
      },
    });
    expect(scene.records).toHaveLength(1);
  });

  test("is left alone by a caller that goes away meanwhile, and no timer stays", async () => {
    const scene = new Scene({ a: "network" });
    const failing = scene.failure();
    await vi.advanceTimersByTimeAsync(1);
    scene.controller.abort();
    expect((await failing).reason).toBe(ErrorReason.PROVIDER_FAILED);
    expect([scene.records.length, vi.getTimerCount()]).toEqual([1, 0]);
    expect(getEventListeners(scene.controller.signal, "abort")).toEqual([]);
  });
});

describe("the deadline", () => {
  test("lets nothing begin once it has passed", async () => {
    const scene = new Scene({ a: "speaks" });
    expect((await scene.failure({ deadlineMs: Date.now() })).reason).toBe(ErrorReason.TIMED_OUT);
    expect(scene.events).toEqual([]);
  });

  test("ends the attempt that runs and lets no other begin", async () => {
    const scene = new Scene({ a: "hangs", b: "speaks" });
    const failing = scene.failure({ deadlineMs: Date.now() + 100 });
    await vi.advanceTimersByTimeAsync(100);
    expect((await failing).reason).toBe(ErrorReason.TIMED_OUT);
    expect(scene.events).toEqual(["begin a", "abort a", "health a given up"]);
    expect(scene.records).toMatchObject([{ outcome: Outcome.FAILED, reason: ErrorReason.TIMED_OUT }]);
  });

  test("is the reason when the caller's signal fires with it", async () => {
    const scene = new Scene({ a: "hangs" });
    const failing = scene.failure({ deadlineMs: Date.now() + 100 });
    setTimeout(() => scene.controller.abort(new Error("canceled")), 99);
    await vi.advanceTimersByTimeAsync(99);
    expect((await failing).reason).toBe(ErrorReason.TIMED_OUT);
  });
});

describe("when all have failed the reason is", () => {
  test.each<[string, readonly Behaviour[], ErrorReason]>([
    ["that of the one attempt", ["credentials"], ErrorReason.PROVIDER_CREDENTIALS],
    ["that of a final failure", ["timeout", "content_policy", "speaks"], ErrorReason.CONTENT_POLICY],
    ["nothing_to_speak when there is nothing", ["nothing_to_speak"], ErrorReason.NOTHING_TO_SPEAK],
    ["the last one's", ["timeout", "bad_answer", "network"], ErrorReason.PROVIDER_FAILED],
    ["overload when all are overloaded", ["overloaded", "engine_full"], ErrorReason.PROVIDER_OVERLOADED],
    [
      "overload when all are overloaded or rest",
      ["overloaded", { rests: 1 }],
      ErrorReason.PROVIDER_OVERLOADED,
    ],
    ["what went wrong besides overload", ["timeout", "overloaded"], ErrorReason.TIMED_OUT],
    ["overload when all rest", [{ rests: 1 }, { rests: 2 }], ErrorReason.PROVIDER_OVERLOADED],
    [
      "internal for a bug, which nobody else is asked to repeat",
      [{ throws: new TypeError("bug") }, "speaks"],
      ErrorReason.INTERNAL,
    ],
    ["the domain error's own", [{ throws: DomainError.invalid([]) }, "speaks"], ErrorReason.INVALID_BODY],
  ])("%s", async (_, behaviours, reason) => {
    const scene = new Scene(
      Object.fromEntries(behaviours.map((behaviour, index) => [`e${index}`, behaviour])),
    );
    expect((await scene.failureInTime()).reason).toBe(reason);
  });

  test("reported with every attempt, and with none of the upstream's words", async () => {
    const error = await new Scene({ a: "upstream", b: "bad_answer" }).failure();
    expect(error.attempts).toEqual([
      { providerName: "A", endpointId: "a", providerStatus: 418, reason: ErrorReason.PROVIDER_FAILED },
      { providerName: "B", endpointId: "b", providerStatus: 418, reason: ErrorReason.PROVIDER_BAD_ANSWER },
    ]);
    expect(error.message).not.toContain("upstream words");
    expect(error.cause).toBeInstanceOf(ProviderError);
  });

  test("answered with the shortest wait for an overload, and with none otherwise", async () => {
    const busy = { throws: new ProviderError("overloaded", "busy", { retryAfterMs: 700 }) };
    expect((await new Scene({ a: busy, b: { rests: 900 } }).failure()).retryAfterMs).toBe(700);
    expect((await new Scene({ a: { rests: 900 }, b: { rests: 300 } }).failure()).retryAfterMs).toBe(300);
    expect((await new Scene({ a: "overloaded" }).failure()).retryAfterMs).toBeUndefined();
    expect((await new Scene({ a: busy, b: "network" }).failureInTime()).retryAfterMs).toBeUndefined();
  });
});

test("a bug is nobody's failure", async () => {
  const scene = new Scene({ a: { throws: new TypeError("bug") } });
  await scene.failure();
  expect(scene.events).toEqual(["begin a", "abort a", "health a given up"]);
});

test("an attempt that throws before it returns a promise is a failed attempt", async () => {
  const scene = new Scene({ a: "speaks" });
  const error = await scene.failure({
    attempt: () => {
      throw new ProviderError("upstream", "no way there");
    },
  });
  expect(error.reason).toBe(ErrorReason.PROVIDER_FAILED);
});

test("endAttempt closes the record of a winner", async () => {
  const scene = new Scene({ a: "speaks" });
  const { attempts } = await scene.run();
  await vi.advanceTimersByTimeAsync(250);
  const ended = attempts.map((record) => endAttempt(record, { outcome: Outcome.SUCCEEDED }, clock));
  expect(ended).toMatchObject([{ outcome: Outcome.SUCCEEDED, durationMs: 250, firstOutputMs: 0 }]);
});

test("every kind of provider error has a reason of its own meaning", () => {
  const reasons = [...retryable, ...final].map((kind) => reasonOfProviderError(new ProviderError(kind, "")));
  expect(reasons).not.toContain(undefined);
  expect(reasons).not.toContain(ErrorReason.INTERNAL);
});
