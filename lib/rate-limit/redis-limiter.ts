/*
 * Owns the limits that several processes share through Redis.
 *
 * 1. While Redis is there, one script decides about each request and counts it, so that limits are exact over all
 *    processes. Every request is counted in this process as well, and those counts decide while Redis is away.
 * 2. No request waits for Redis longer than `answerTimeoutMs`. After the first that got no answer Redis is away, and
 *    none asks it until a probe of our own was answered in that time; a connection that leaves a probe unanswered is
 *    given up for a new one.
 * 3. A request in flight is a lease in Redis that this process renews while the request runs and gives back when it
 *    ends. A lease that could not be given back, and those of a process that died, end by themselves.
 * 4. A lease is given back on the connection that asked for it, behind its question; so one that is taken after its
 *    request has stopped to wait does not stay.
 * 5. When Redis is back, also empty, it is told at once of all requests that are in flight.
 * 6. Going away and coming back is logged once each.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import {
  type Admission,
  admissionUntil,
  type LimitedRequest,
  type RequestLimiter,
  type RequestLimits,
  rateWindowMs,
  refusalError,
  throwIfGone,
} from "./limiter.ts";
import { LocalCounts } from "./local-counts.ts";
import { RedisConnection, redisFailure } from "./redis-connection.ts";
import type { RedisAnswer } from "./redis-scripts.ts";

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

/** Limits exactly over all processes, and within this one while Redis is away. */
export class RedisLimiter implements RequestLimiter {
  readonly #options: Required<Omit<RedisLimiterOptions, "url">>;
  readonly #redis: RedisConnection;
  readonly #local: LocalCounts;
  readonly #leases = new Map<string, Set<string>>();
  readonly #process = randomBytes(9).toString("base64url");
  readonly #closing = new AbortController();
  #lastLease = 0;
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

  get away(): boolean {
    return this.#away;
  }

  async admit({ bucket, perMinute }: LimitedRequest, signal?: AbortSignal): Promise<Admission> {
    throwIfGone(signal);
    const { perMinute: defaultPerMinute, maxInFlight } = this.#options.limits;
    const limits = { perMinute: perMinute ?? defaultPerMinute, maxInFlight };
    const lease = this.#newLease();
    const answer = this.#away ? undefined : await this.#ask(bucket, lease, limits);
    const refusal = answer === undefined ? this.#local.refusal(bucket, limits) : refusalOf(answer);
    if (refusal !== undefined) {
      if (answer === undefined) this.#giveBack(bucket, lease);
      throw refusalError(refusal);
    }
    this.#begin(bucket, lease);
    const admission = admissionUntil(() => this.#end(bucket, lease));
    if (signal?.aborted) admission.release();
    throwIfGone(signal);
    return admission;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#away = true;
    await this.#redis.close();
  }

  #newLease(): string {
    this.#lastLease += 1;
    return `${this.#process}-${this.#lastLease.toString(36)}`;
  }

  /** What Redis says; undefined when it does not say so in time. */
  async #ask(bucket: string, lease: string, limits: RequestLimits): Promise<RedisAnswer | undefined> {
    const { answerTimeoutMs } = this.#options;
    try {
      const answer = await within(answerTimeoutMs, this.#take(bucket, lease, limits));
      if (answer === undefined) this.#leave("slow");
      return answer;
    } catch (thrown) {
      this.#leave(redisFailure(thrown));
      return undefined;
    }
  }

  #take(bucket: string, lease: string, limits: RequestLimits): Promise<RedisAnswer> {
    const { leaseMs, windowMs } = this.#options;
    return this.#redis.take({ bucket, lease, leaseMs, windowMs, ...limits });
  }

  #begin(bucket: string, lease: string): void {
    this.#local.add(bucket);
    const leases = this.#leases.get(bucket);
    if (leases === undefined) this.#leases.set(bucket, new Set([lease]));
    else leases.add(lease);
  }

  #end(bucket: string, lease: string): void {
    this.#local.remove(bucket);
    const leases = this.#leases.get(bucket);
    leases?.delete(lease);
    if (leases?.size === 0) this.#leases.delete(bucket);
    this.#giveBack(bucket, lease);
  }

  /** A failure is nobody's to mend: the lease ends by itself. */
  #giveBack(bucket: string, lease: string): void {
    if (this.#redis.ready) this.#redis.give(bucket, lease).catch(() => undefined);
  }

  #leave(cause: string): void {
    if (this.#away || this.#closing.signal.aborted) return;
    this.#away = true;
    this.#options.log.warn({ cause }, "redis is away: requests are limited in this process alone");
    void this.#awaitReturn();
  }

  async #awaitReturn(): Promise<void> {
    do {
      if (!(await this.#pause(this.#options.probeIntervalMs))) return;
    } while ((await this.#probe()) !== undefined);
    if (this.#closing.signal.aborted) return;
    this.#away = false;
    this.#options.log.info("redis is back: requests are limited over all processes");
    await this.#renew();
  }

  /** Why Redis can't be used; undefined when it can. Asks as a request would, under a bucket of this process. */
  async #probe(): Promise<string | undefined> {
    const { answerTimeoutMs, clock, probeTimeoutMs } = this.#options;
    const bucket = `probe-${this.#process}`;
    try {
      if (!this.#redis.ready) await this.#redis.open();
      const lease = this.#newLease();
      const askedMs = clock.monotonicMs();
      const answer = await within(
        probeTimeoutMs,
        this.#take(bucket, lease, {
          perMinute: Number.MAX_SAFE_INTEGER,
          maxInFlight: Number.MAX_SAFE_INTEGER,
        }),
      );
      if (answer === undefined) this.#redis.drop();
      else this.#giveBack(bucket, lease);
      return answer === undefined || clock.monotonicMs() - askedMs > answerTimeoutMs ? "slow" : undefined;
    } catch (thrown) {
      return redisFailure(thrown);
    }
  }

  async #keepLeases(): Promise<void> {
    while (await this.#pause(this.#options.leaseMs / 3)) if (!this.#away) await this.#renew();
  }

  async #renew(): Promise<void> {
    const { leaseMs, probeTimeoutMs } = this.#options;
    for (const bucket of [...this.#leases.keys()]) {
      const leases = this.#leases.get(bucket);
      if (this.#away) return;
      if (leases === undefined) continue;
      try {
        const answer = await within(probeTimeoutMs, this.#redis.renew(bucket, [...leases], leaseMs));
        if (answer === undefined) this.#leave("slow");
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

function refusalOf(answer: RedisAnswer) {
  return answer === "admitted" ? undefined : answer;
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
