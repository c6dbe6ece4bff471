/*
 * Owns the limits that several processes share through Redis.
 *
 * 1. While Redis is there, one script decides about each request and counts it, so that limits are exact over all
 *    processes. Every request is counted in this process as well, and those counts decide while Redis is away.
 * 2. No request waits for Redis longer than `answerTimeoutMs`. After the first that got no answer Redis is away, and
 *    none asks it until a probe of our own was answered in that time; a connection that leaves a probe unanswered is
 *    given up for a new one.
 * 3. A request in flight is one member of a sorted set in Redis, however many processes hold it: each has a lease on it
 *    that it renews while it does and gives back when it ends. A lease that could not be given back, and those of a
 *    process that died, end by themselves, and with the last of them the request is in flight no more.
 * 4. A lease is given back on the connection that asked for it, behind its question; so one that is taken after its
 *    request has stopped to wait does not stay.
 * 5. When Redis is back, also empty, all requests that are in flight are added to it at once.
 * 6. What was admitted alone is owed (redis-debts.ts): it is reported to Redis before Redis is asked again, and with each
 *    probe that it answers too slowly, and this process learns what the others have admitted. So processes that count
 *    alone since Redis is slow go beyond a limit by what they admit between two probes.
 * 7. Going away and coming back is logged once each.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import {
  type Admission,
  AdmissionIds,
  type LimitedRequest,
  once,
  type Refusal,
  type RequestLimiter,
  type RequestLimits,
  rateWindowMs,
  refusalError,
  type SharingCounts,
  throwIfGone,
} from "./limiter.ts";
import { LocalCounts } from "./local-counts.ts";
import { RedisConnection, redisFailure } from "./redis-connection.ts";
import { RedisDebts } from "./redis-debts.ts";
import { type Lease, leasesKey, type RedisAnswer } from "./redis-scripts.ts";

/** Limits over all processes that use the same Redis; times in milliseconds. */
export interface RedisLimiterOptions {
  /** redis:// or rediss://; a secret. */
  readonly url: string;
  readonly limits: RequestLimits;
  readonly log: Log;
  readonly clock?: Clock;
  /** Defaults to a minute. */
  readonly windowMs?: number;
  /** The longest that a request waits for Redis; defaults to 100. */
  readonly answerTimeoutMs?: number;
  /** Pause between probes while Redis is away; defaults to 1 s. */
  readonly probeIntervalMs?: number;
  /** How long a connection may take to open, or to answer a probe, before it is given up; defaults to 2 s. */
  readonly probeTimeoutMs?: number;
  /** How long what is in flight counts after its process has died; renewed three times as often. Defaults to 45 s. */
  readonly leaseMs?: number;
}

/** Who asks what processes share, and never counts as in flight. */
const probeLimits = { perMinute: Number.MAX_SAFE_INTEGER, maxInFlight: Number.MAX_SAFE_INTEGER };

/** Limits exactly over all processes, and within this one while Redis is away. */
export class RedisLimiter implements RequestLimiter {
  readonly #options: Required<Omit<RedisLimiterOptions, "url">>;
  readonly #redis: RedisConnection;
  readonly #local: LocalCounts;
  readonly #debts: RedisDebts;
  readonly #leases = new Set<Lease>();
  readonly #ids = new AdmissionIds();
  readonly #probeBucket = `probe-${this.#ids.next()}`;
  readonly #closing = new AbortController();
  readonly #left = { slow: 0, failed: 0 };
  #decidedAlone = 0;
  #away = true;

  private constructor({ url, ...options }: RedisLimiterOptions) {
    this.#options = {
      clock: systemClock,
      windowMs: rateWindowMs,
      answerTimeoutMs: 100,
      probeIntervalMs: 1000,
      probeTimeoutMs: 2000,
      leaseMs: 45_000,
      ...options,
    };
    const { clock, windowMs, probeTimeoutMs } = this.#options;
    this.#local = new LocalCounts({ clock, windowMs });
    this.#debts = new RedisDebts(this.#local);
    this.#redis = new RedisConnection({
      url,
      openTimeoutMs: probeTimeoutMs,
      onLost: (cause) => this.#leave(cause),
    });
  }

  /** Starts with Redis, or without it when it is not there within `probeTimeoutMs`. */
  static async open(options: RedisLimiterOptions): Promise<RedisLimiter> {
    const limiter = new RedisLimiter(options);
    const failure = await limiter.#probe();
    limiter.#away = false;
    if (failure !== undefined) limiter.#leave(failure);
    void limiter.#keepLeases();
    return limiter;
  }

  get sharing(): SharingCounts {
    return { away: this.#away, left: { ...this.#left }, decidedAlone: this.#decidedAlone };
  }

  async admit(request: LimitedRequest, signal?: AbortSignal): Promise<Admission> {
    throwIfGone(signal);
    const lease: Lease = { request, id: this.#ids.next(), holder: "admitted" };
    const { answer, late } = await this.#ask(() => this.#take(lease));
    const { limits } = this.#options;
    this.#obey(lease, answer, () => this.#local.refusal(request, limits));
    this.#local.begin(request); // 1.
    if (answer === undefined) this.#owe(request, late); // 6.
    return this.#begin(lease, signal);
  }

  async enter(request: LimitedRequest, id?: string, signal?: AbortSignal): Promise<Admission> {
    throwIfGone(signal);
    const lease: Lease = { request, id: id ?? this.#ids.next(), holder: "entered" };
    const { leaseMs, limits, windowMs } = this.#options;
    const { answer } = await this.#ask(() =>
      this.#redis.commands.enter({ ...lease, leaseMs, limits, windowMs }),
    );
    this.#obey(lease, answer, () => this.#local.fullness(request, limits, id));
    return this.#begin(lease, signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#away = true;
    await this.#redis.close();
  }

  /** What Redis says; undefined when it does not say so in time, and then what it says too late. */
  async #ask(
    question: () => Promise<RedisAnswer>,
  ): Promise<{ answer?: RedisAnswer | undefined; late?: Promise<RedisAnswer> }> {
    if (this.#away) return {};
    try {
      const late = question();
      const answer = await within(this.#options.answerTimeoutMs, late); // 2.
      if (answer !== undefined) return { answer };
      this.#leave("slow");
      return { late };
    } catch (thrown) {
      this.#leave(redisFailure(thrown));
      return {};
    }
  }

  /** Throws the refusal that Redis gave or, where it gave none, this process's own. */
  #obey(lease: Lease, answer: RedisAnswer | undefined, ownRefusal: () => Refusal | undefined): void {
    if (answer === undefined) this.#decidedAlone += 1;
    const refusal = answer === undefined ? ownRefusal() : answer;
    if (refusal === undefined || refusal === "admitted") return;
    if (answer === undefined) this.#giveBack(lease); // 4.
    throw refusalError(refusal);
  }

  /** A request was not reported to Redis, unless it was counted there and the answer came too late. */
  #owe(request: LimitedRequest, late: Promise<RedisAnswer> | undefined): void {
    this.#debts.owe(request);
    const counted = (answer: RedisAnswer) => {
      if (answer === "admitted") this.#debts.pay(request);
    };
    late?.then(counted, () => undefined);
  }

  #take(lease: Lease, limits: RequestLimits = this.#options.limits): Promise<RedisAnswer> {
    const { leaseMs, windowMs } = this.#options;
    return this.#redis.commands.take({ ...lease, leaseMs, windowMs, limits });
  }

  #begin(lease: Lease, signal: AbortSignal | undefined): Admission {
    const { request, id } = lease;
    this.#local.hold(request.bucket, id);
    this.#leases.add(lease);
    const admission = { id, release: once(() => this.#end(lease)) };
    if (signal?.aborted) admission.release();
    throwIfGone(signal);
    return admission;
  }

  #end(lease: Lease): void {
    this.#local.letGo(lease.request.bucket, lease.id);
    this.#leases.delete(lease);
    this.#giveBack(lease);
  }

  /** A failure is nobody's to mend: the lease ends by itself. */
  #giveBack(lease: Lease): void {
    if (this.#redis.ready) this.#redis.commands.give(lease).catch(() => undefined);
  }

  #leave(cause: string): void {
    if (this.#away || this.#closing.signal.aborted) return; // 7.
    this.#away = true;
    this.#left[cause === "slow" ? "slow" : "failed"] += 1;
    this.#options.log.warn({ cause }, "redis is away: requests are limited in this process alone");
    void this.#awaitReturn();
  }

  async #awaitReturn(): Promise<void> {
    for (;;) {
      if (!(await this.#pause(this.#options.probeIntervalMs))) return;
      const failure = await this.#probe();
      // 6.
      if (failure === undefined || failure === "slow") await this.#reportOwed();
      else this.#debts.dropEnded();
      if (failure === undefined) break;
    }
    if (this.#closing.signal.aborted) return;
    this.#away = false;
    this.#options.log.info("redis is back: requests are limited over all processes");
    await this.#renew(); // 5.
  }

  /** Why Redis can't be used; undefined when it can. Asks as a request would, under a bucket of this process. */
  async #probe(): Promise<string | undefined> {
    const { answerTimeoutMs, clock, probeTimeoutMs } = this.#options;
    try {
      if (!this.#redis.ready) await this.#redis.open();
      const request = { bucket: this.#probeBucket };
      const lease: Lease = { request, id: this.#ids.next(), holder: "admitted" };
      const askedMs = clock.monotonicMs();
      const answer = await within(probeTimeoutMs, this.#take(lease, probeLimits));
      // 2.
      if (answer === undefined) this.#redis.drop();
      else this.#giveBack(lease);
      return answer === undefined || clock.monotonicMs() - askedMs > answerTimeoutMs ? "slow" : undefined;
    } catch (thrown) {
      return redisFailure(thrown);
    }
  }

  /** Reports what was admitted alone, and reads what all have. What fails may have arrived: it is not repeated. */
  async #reportOwed(): Promise<void> {
    const { clock, probeTimeoutMs } = this.#options;
    if (!this.#redis.ready) return;
    const reports = this.#debts.take().map(async ({ key, kind, name, count, endsMs }) => {
      const { begun, leftMs } = await this.#redis.commands.owe(
        key,
        count,
        Math.ceil(endsMs - clock.monotonicMs()),
      );
      this.#local.learn(kind, name, begun, leftMs);
    });
    await within(probeTimeoutMs, Promise.allSettled(reports));
  }

  async #keepLeases(): Promise<void> {
    while (await this.#pause(this.#options.leaseMs / 3)) if (!this.#away) await this.#renew(); // 3.
  }

  async #renew(): Promise<void> {
    const { leaseMs, probeTimeoutMs } = this.#options;
    for (const bucket of Map.groupBy(this.#leases, ({ request }) => leasesKey(request)).values()) {
      // What was given back since must not come to life again.
      const [first, ...others] = bucket.filter((lease) => this.#leases.has(lease));
      if (this.#away) return;
      if (first === undefined) continue;
      try {
        const renewed = this.#redis.commands.renew(first.request, [first, ...others], leaseMs);
        if ((await within(probeTimeoutMs, renewed)) === undefined) this.#leave("slow");
      } catch (thrown) {
        this.#leave(redisFailure(thrown));
      }
    }
  }

  /** False when the limiter is closed by then. */
  #pause(ms: number): Promise<boolean> {
    return delay(ms, true, { ref: false, signal: this.#closing.signal }).catch(() => false);
  }
}

/** What `answer` resolves with, or undefined when that takes longer. */
function within<T>(timeoutMs: number, answer: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    // What has arrived while this process was busy counts as in time: it is read before an immediate runs.
    const timer = setTimeout(() => setImmediate(resolve, undefined), timeoutMs);
    answer.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (thrown: unknown) => {
        clearTimeout(timer);
        reject(thrown);
      },
    );
  });
}
