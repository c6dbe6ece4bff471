/**
 * The attempts of one request: endpoints in their order until one has its first output.
 *
 * 1. One attempt at a time. The next begins only after a retryable ProviderError of the one before it, and not at the same
 *    endpoint with another key where that would fail alike.
 * 2. None begins once `signal` is aborted or `deadlineMs` has passed; both are checked just before each.
 * 3. An attempt that lost (failed, too slow, ended by `signal`) has its signal aborted, and is not waited for. If its
 *    value comes all the same it is discarded; if it throws later nobody hears of it.
 * 4. The winner's signal stays tied to `signal`: it outlives this call.
 * 5. Each admitted attempt reports once to the endpoint's health how it ended; giving up says nothing about it.
 * 6. Where no other is left, an endpoint that could not be reached is tried once more, after a short pause: its upstream
 *    was not sent all of the request, so nothing was bought.
 * 7. What an upstream came to is answered as that, also where the caller left meanwhile and so no other is tried.
 */
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { type AttemptFailure, DomainError } from "../../lib/runtime/domain-error.ts";
import type { Endpoint } from "../catalog/catalog.ts";
import { type AttemptContext, ProviderError, type ProviderErrorKind } from "../contract.ts";
import { type Candidate, healthIdsOf, speaksForEndpoint } from "./candidate.ts";
import { CandidateQueue, pauseBeforeRetry } from "./candidate-queue.ts";
import type { AdmittedAttempt, EndpointHealth } from "./endpoint-health.ts";
import { firstOutput } from "./first-output.ts";

/** What must be known of an endpoint to try it and to record it. */
export type AttemptEndpoint = Candidate<Pick<Endpoint, "id" | "providerSlug" | "providerName">>;

/** One try at one endpoint, as usage records have it. */
export interface AttemptRecord<E extends AttemptEndpoint = AttemptEndpoint> {
  readonly endpoint: E;
  /** When it was sent: wall clock, Unix milliseconds. */
  readonly startedAtMs: number;
  /** The same instant on the monotonic clock. */
  readonly startedMonotonicMs: number;
  /** From sending to the first output; undefined when there was none. */
  readonly firstOutputMs: number | undefined;
  /** From sending to its end; for a winner that still runs, to the first output. See `endAttempt`. */
  readonly durationMs: number;
  /** Whether the upstream was sent the whole request, so that it may have worked on it. */
  readonly sent: boolean;
  /** UNSPECIFIED for a winner that still runs. */
  readonly outcome: Outcome;
  /** Why it did not succeed; undefined otherwise. */
  readonly reason: ErrorReason | undefined;
  /** The upstream's HTTP status when it failed; 0 when it gave none. */
  readonly providerStatus: number;
  /** What was thrown: for the log, never for callers. */
  readonly error: unknown;
}

/** What one attempt is given. */
export type AttemptBounds = Pick<AttemptContext, "signal" | "onSent">;

interface AttemptsOptions<E extends AttemptEndpoint, T> {
  /** Best first. */
  readonly candidates: readonly E[];
  /** Resolves when the first output is in hand; throws ProviderError. Everything it began must end with `signal`. */
  attempt(endpoint: E, bounds: AttemptBounds): Promise<T>;
  /** Hears once of each attempt whose upstream has been sent the whole request. */
  onSent?(endpoint: E): void;
  /** Frees a value that came after its attempt had lost; its signal is aborted already. */
  discard?(value: T): void | Promise<void>;
  /** Longest wait for the first output of one attempt. */
  readonly firstOutputTimeoutMs: number;
  /** Ends everything at once: the caller's leaving, unless the work is to outlast it, or a limit in time. */
  readonly signal: AbortSignal;
  /** When the request must have begun its answer: wall clock, Unix milliseconds. Unset: no limit. */
  readonly deadlineMs?: number;
  readonly health: Pick<EndpointHealth, "admit">;
  readonly clock: Clock;
  /** From 0 to below 1, as Math.random. */
  random(): number;
  /** Hears of every attempt once: when it lost, or when it has its first output. */
  onAttempt?(record: AttemptRecord<E>): void;
}

/** The attempt that won. */
export interface AttemptsResult<E extends AttemptEndpoint, T> {
  readonly value: T;
  readonly endpoint: E;
  /** All attempts in their order; the last one is the winner's, still running. */
  readonly attempts: readonly AttemptRecord<E>[];
  /** Ends the winner's work at once; does nothing after its end. */
  abort(): void;
}

/**
 * Tries candidates until one has its first output. Throws DomainError: `cancelled` when the caller went away,
 * `timed_out` when the deadline passed, otherwise the most specific reason of the attempts, which it names.
 */
export async function runAttempts<E extends AttemptEndpoint, T>(
  options: AttemptsOptions<E, T>,
): Promise<AttemptsResult<E, T>> {
  const { candidates, health, onAttempt } = options;
  const records: AttemptRecord<E>[] = [];
  const waitsMs: number[] = [];
  const queue = new CandidateQueue(candidates);
  for (let endpoint = queue.next(); endpoint !== undefined; endpoint = queue.next()) {
    if (queue.triesAgain) await pauseBeforeRetry(options); // 6.
    const stop = giveUp(options);
    if (stop?.reason === ErrorReason.CANCELLED && records.length > 0) break; // 7.
    if (stop !== undefined) throw stopped(stop.reason, records); // 2.
    const admission = health.admit(...healthIdsOf(endpoint));
    if (!admission.admitted) {
      waitsMs.push(admission.retryAfterMs);
      continue;
    }
    const controller = new AbortController();
    const run = await runAttempt(endpoint, controller, admission.attempt, options);
    records.push(run.record);
    onAttempt?.(run.record);
    if (run.won) return { value: run.value, endpoint, attempts: records, abort: () => controller.abort() };
    if (!(run.error instanceof ProviderError && run.error.retryable)) break; // 1.
    queue.failed(endpoint, run.error, run.record.sent); // 1., 6.
  }
  throw allFailed(records, waitsMs);
}

/** How an attempt ended; what is left out stays as it is in its record. */
export type AttemptEnd = Pick<AttemptRecord, "outcome"> &
  Partial<Pick<AttemptRecord, "reason" | "providerStatus" | "error">>;

/** The record of an attempt that has ended now: for callers that of a winner, however it ended. */
export function endAttempt<E extends AttemptEndpoint>(
  record: AttemptRecord<E>,
  end: AttemptEnd,
  clock: Clock,
): AttemptRecord<E> {
  return { ...record, ...end, durationMs: clock.monotonicMs() - record.startedMonotonicMs };
}

/** The request is over for a reason that has nothing to do with the endpoint. Never leaves this file. */
class GivenUp extends Error {
  readonly reason: ErrorReason;

  constructor(reason: ErrorReason) {
    super("given up");
    this.reason = reason;
  }
}

/** Timers may fire a little before the clock shows their time. */
const timerSlackMs = 5;

/** Decided by our own deadline: the reason of a signal differs between transports. */
function giveUp({ signal, deadlineMs, clock }: GiveUpOptions): GivenUp | undefined {
  const late = deadlineMs !== undefined && clock.nowMs() >= deadlineMs - timerSlackMs;
  if (late) return new GivenUp(ErrorReason.TIMED_OUT);
  return signal.aborted ? new GivenUp(ErrorReason.CANCELLED) : undefined;
}

type GiveUpOptions = Pick<AttemptsOptions<AttemptEndpoint, unknown>, "signal" | "deadlineMs" | "clock">;

type AttemptRun<E extends AttemptEndpoint, T> =
  | { readonly won: true; readonly value: T; readonly record: AttemptRecord<E> }
  | { readonly won: false; readonly error: unknown; readonly record: AttemptRecord<E> };

async function runAttempt<E extends AttemptEndpoint, T>(
  endpoint: E,
  controller: AbortController,
  admitted: AdmittedAttempt,
  options: AttemptsOptions<E, T>,
): Promise<AttemptRun<E, T>> {
  const { clock, discard, signal, firstOutputTimeoutMs, deadlineMs = Infinity } = options;
  const begun = beginRecord(endpoint, clock);
  let sent = false;
  const onSent = () => {
    if (sent || controller.signal.aborted) return;
    sent = true;
    options.onSent?.(endpoint);
  };
  try {
    const value = await firstOutput({
      // 3., 4.
      begin: (attemptSignal) => options.attempt(endpoint, { signal: attemptSignal, onSent }),
      discard,
      controller,
      signal,
      timeoutMs: Math.min(firstOutputTimeoutMs, deadlineMs - begun.startedAtMs),
      stop: () => giveUp(options),
    });
    const firstOutputMs = clock.monotonicMs() - begun.startedMonotonicMs;
    // Also of an upstream that answers before it has all of the request.
    onSent();
    await admitted.succeeded(firstOutputMs); // 5.
    return { won: true, value, record: { ...begun, sent, firstOutputMs, durationMs: firstOutputMs } };
  } catch (error) {
    if (speaksForEndpoint(endpoint, error)) await admitted.failed(error); // 5.
    return { won: false, error, record: endAttempt({ ...begun, sent }, endOf(error), clock) };
  } finally {
    admitted.givenUp(); // 5.
  }
}

function beginRecord<E extends AttemptEndpoint>(endpoint: E, clock: Clock): AttemptRecord<E> {
  return {
    endpoint,
    startedAtMs: clock.nowMs(),
    startedMonotonicMs: clock.monotonicMs(),
    firstOutputMs: undefined,
    durationMs: 0,
    sent: false,
    outcome: Outcome.UNSPECIFIED,
    reason: undefined,
    providerStatus: 0,
    error: undefined,
  };
}

function endOf(error: unknown): AttemptEnd {
  if (error instanceof GivenUp) {
    const { reason } = error;
    return { outcome: reason === ErrorReason.CANCELLED ? Outcome.CANCELLED : Outcome.FAILED, reason };
  }
  const providerStatus = error instanceof ProviderError ? (error.status ?? 0) : 0;
  return { outcome: Outcome.FAILED, reason: reasonOfAttemptFailure(error), providerStatus, error };
}

function stopped(reason: ErrorReason, records: readonly AttemptRecord[]): DomainError {
  return new DomainError(reason, sentenceOfReason(reason), { attempts: records.map(toAttemptFailure) });
}

function allFailed(records: readonly AttemptRecord[], waitsMs: readonly number[]): DomainError {
  const overloaded = ErrorReason.PROVIDER_OVERLOADED;
  // An overload is the answer only when nothing else went wrong: any other failure says more.
  const decisive = records.findLast(({ reason }) => reason !== overloaded) ?? records.at(-1);
  const reason = decisive?.reason ?? overloaded;
  const knownWaitsMs = [...waitsMs, ...records.flatMap(({ error }) => retryAfterOf(error))];
  return new DomainError(reason, sentenceOfReason(reason), {
    attempts: records.map(toAttemptFailure),
    ...(decisive === undefined ? {} : { cause: decisive.error }),
    ...(reason === overloaded && knownWaitsMs.length > 0 ? { retryAfterMs: Math.min(...knownWaitsMs) } : {}),
  });
}

function retryAfterOf(error: unknown): readonly number[] {
  return error instanceof ProviderError && error.retryAfterMs !== undefined ? [error.retryAfterMs] : [];
}

/** An attempt as errors show it to callers. */
export function toAttemptFailure({ endpoint, providerStatus, reason }: AttemptRecord): AttemptFailure {
  return {
    providerName: endpoint.providerName,
    endpointId: endpoint.id,
    providerStatus,
    reason: reason ?? ErrorReason.UNSPECIFIED,
  };
}

const reasonByKind: Readonly<Record<ProviderErrorKind, ErrorReason>> = {
  // The catalogue let the request pass, so there is nothing for the caller to change: the provider's failure.
  invalid_request: ErrorReason.PROVIDER_FAILED,
  nothing_to_speak: ErrorReason.NOTHING_TO_SPEAK,
  content_policy: ErrorReason.CONTENT_POLICY,
  credentials: ErrorReason.PROVIDER_CREDENTIALS,
  overloaded: ErrorReason.PROVIDER_OVERLOADED,
  engine_full: ErrorReason.PROVIDER_OVERLOADED,
  timeout: ErrorReason.TIMED_OUT,
  network: ErrorReason.PROVIDER_FAILED,
  upstream: ErrorReason.PROVIDER_FAILED,
  bad_answer: ErrorReason.PROVIDER_BAD_ANSWER,
};

/** The reason that a provider's failure has for callers, in usage records and in `attempts`. */
export function reasonOfProviderError(error: ProviderError): ErrorReason {
  return reasonByKind[error.kind];
}

/** The reason of whatever an attempt threw; `internal` for what is a bug. */
function reasonOfAttemptFailure(thrown: unknown): ErrorReason {
  return thrown instanceof ProviderError ? reasonOfProviderError(thrown) : DomainError.from(thrown).reason;
}

const sentences: Readonly<Partial<Record<ErrorReason, string>>> = {
  [ErrorReason.PROVIDER_FAILED]: "the provider failed",
  [ErrorReason.PROVIDER_BAD_ANSWER]: "the provider gave an answer that makes no sense",
  [ErrorReason.CONTENT_POLICY]: "the provider refused the content",
  [ErrorReason.PROVIDER_OVERLOADED]: "the provider is overloaded",
  [ErrorReason.PROVIDER_CREDENTIALS]: "the provider refused this gateway's credentials",
  [ErrorReason.NOTHING_TO_SPEAK]: "the text has nothing that can be spoken",
  [ErrorReason.TIMED_OUT]: "no output came in time",
  [ErrorReason.CANCELLED]: "the caller went away",
  [ErrorReason.INTERNAL]: "internal error",
};

/** A sentence of our own about a reason; nothing of an upstream's words is in it. */
function sentenceOfReason(reason: ErrorReason): string {
  return sentences[reason] ?? "the request failed";
}
