import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { Generation } from "../../lib/generation/run-generation.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { Endpoint } from "../catalog/catalog.ts";
import { ProviderError } from "../contract.ts";
import { type AttemptBounds, type AttemptsResult, runAttempts } from "./attempt.ts";
import { logAttempt } from "./attempt-log.ts";
import { brokenOff } from "./broken-off.ts";
import { type Candidate, healthIdsOf } from "./candidate.ts";
import type { EndpointHealth } from "./endpoint-health.ts";
import type { GenerationRecord } from "./generation-record.ts";

interface GenerationAttempts<E extends Endpoint, T> {
  readonly generation: Pick<Generation<never>, "id" | "deadline" | "deadlineMs" | "log">;
  readonly record: GenerationRecord<E>;
  /** Best first. */
  readonly candidates: readonly Candidate<E>[];
  /** Resolves when the first output is in hand; throws ProviderError. */
  attempt(endpoint: Candidate<E>, bounds: AttemptBounds): Promise<T>;
  /** Frees a value that came after its attempt had lost. */
  discard(value: T): Promise<void>;
  /** Longest wait for the first output of one attempt. */
  readonly firstOutputTimeoutMs: number;
  readonly health: EndpointHealth;
  readonly clock: Clock;
  /** From 0 to below 1, as Math.random. */
  random(): number;
}

/**
 * Tries candidates until one has its first output. What has been sent outlasts the caller, unless its vendor bills no
 * cancelled work. Throws DomainError.
 */
export async function winningAttempt<E extends Endpoint, T>(
  options: GenerationAttempts<E, T>,
): Promise<WinningAttempt<E, T>> {
  const { generation, record } = options;
  const { deadline, deadlineMs, id, log } = generation;
  const result = await runAttempts({
    ...options,
    signal: deadline.signal,
    deadlineMs,
    onSent({ cancel }) {
      if (cancel !== "free") deadline.outlastCaller();
    },
    onAttempt(attempt) {
      record.attempted(attempt);
      logAttempt(log, id, attempt);
      if (attempt.outcome !== Outcome.UNSPECIFIED) deadline.followCaller();
    },
  });
  return new WinningAttempt(result, options);
}

/** The attempt that has its first output in hand. */
export class WinningAttempt<E extends Endpoint, T> {
  readonly value: T;
  readonly endpoint: Candidate<E>;
  readonly #attempts: AttemptsResult<Candidate<E>, T>["attempts"];
  readonly #options: GenerationAttempts<E, T>;
  #failedByItself = false;

  constructor(
    { value, endpoint, attempts }: AttemptsResult<Candidate<E>, T>,
    options: GenerationAttempts<E, T>,
  ) {
    this.value = value;
    this.endpoint = endpoint;
    this.#attempts = attempts;
    this.#options = options;
  }

  /** Whether the provider failed, and neither the caller nor our own time limits ended the work. */
  get failedByItself(): boolean {
    return this.#failedByItself;
  }

  /**
   * The next output; undefined at the end, also where the caller left and what comes of it was known. Throws DomainError
   * when the answer broke off, which ends the attempt.
   */
  next<V>(outputs: AsyncIterator<V, unknown>): Promise<V | undefined> {
    const { deadline } = this.#options.generation;
    if (deadline.endedWellByCaller) return Promise.resolve(undefined);
    return deadline.waitFor(outputs.next()).then(
      (next) => (next.done ? undefined : next.value),
      (thrown: unknown) => {
        if (deadline.endedWellByCaller) return undefined;
        this.#failedByItself = thrown instanceof ProviderError && !deadline.signal.aborted;
        throw this.#broken(thrown);
      },
    );
  }

  /** All of the answer is there: so much was made since the attempt began. */
  recordAnswer(units: number): void {
    const { generation, health, clock } = this.#options;
    const winner = this.#attempts.at(-1);
    if (winner === undefined || generation.deadline.endedByCaller) return;
    const seconds = (clock.monotonicMs() - winner.startedMonotonicMs) / 1000;
    health.recordAnswer(units / seconds, ...healthIdsOf(this.endpoint));
  }

  #broken(thrown: unknown): Error {
    const { generation, record, health, clock } = this.#options;
    const { deadline, id, log } = generation;
    const { error, attempts } = brokenOff({
      thrown,
      attempts: this.#attempts,
      timedOut: deadline.timedOut,
      upstreamSlow: deadline.upstreamSlow,
      cancelled: deadline.endedByCaller,
      generationId: id,
      health,
      clock,
      log,
    });
    record.allEnded(attempts);
    return error;
  }
}
