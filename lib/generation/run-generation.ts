/**
 * The one life of a generation, whatever it makes: own keys, hold, attempts, frames, outcome, settlement.
 *
 * 1. Credit is held before anything is fetched or sent for it; the last frame, or the error, comes once the usage event
 *    is safe. However it ends, its hold is settled or released.
 * 2. Nothing is handed out before the first output is in hand; until then a failure is a plain error.
 * 3. The caller's pace is the upstream's: an output is asked for only when the one before it was taken.
 * 4. A caller may leave at any moment. Before an upstream has all of a request, that ends the work. From then on it goes
 *    on, within the request's own deadline, until what comes of it is known, and is charged as if the caller had stayed;
 *    no other attempt begins. Where the vendor bills no cancelled work (`cancel: free`) it ends the work at any moment.
 */
import { randomUUID } from "node:crypto";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { type Api, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import type { Log } from "../runtime/log.ts";
import { Deadline } from "./deadline.ts";
import { FrameHandout } from "./frame-handout.ts";
import type { Attribution } from "./generation-event.ts";
import {
  PaidRequest,
  type PaidRequestEnd,
  type PaidRequestOptions,
  type PaidRequests,
} from "./paid-request.ts";
import type { UsageDoubt } from "./usage-doubt.ts";

/** How a generation ended. */
export interface GenerationOutcome {
  readonly outcome: Outcome;
  /** Why it did not succeed; undefined otherwise. */
  readonly reason: ErrorReason | undefined;
  /** Whether the caller left before the end. */
  readonly cancelled: boolean;
}

/** What one kind of generation does at each step of its life. `C` is what may serve it, `F` what is handed out. */
export interface GenerationSteps<C, F> {
  readonly api: Api;
  /** What ids begin with: `gen-tts`, `gen-img`. */
  readonly idPrefix: string;
  /** As the client named it. */
  readonly model: string;
  readonly timeoutMs: number;
  /** Longest silence of the upstream during its answer; no limit of its own unless given. */
  readonly idleTimeoutMs?: number;
  /** The providers to which the account may have brought a key. */
  readonly ownKeySlugs: readonly string[];
  /** Who may serve it, best first, by the account's own keys. Throws DomainError. */
  candidates(ownKeys: ReadonlyMap<string, string>): C;
  /** The first to be tried, and the most that it can cost. */
  hold(candidates: C): Pick<PaidRequestOptions, "endpoint" | "amountNanoUsd" | "byokAmountNanoUsd">;
  /** From the first attempt to the end of the answer, all of it handed out. Throws DomainError. */
  answer(candidates: C, generation: Generation<F>): Promise<void>;
  /** What it came to; undefined when nothing was sent for it. */
  end(outcome: GenerationOutcome): PaidRequestEnd;
  /** The last frame of a whole answer. */
  finished(end: PaidRequestEnd): F;
}

/** One generation under way. */
export interface Generation<F> {
  readonly id: string;
  readonly deadline: Deadline;
  /** Wall clock, Unix milliseconds. */
  readonly deadlineMs: number;
  readonly log: Log;
  /** Hands a frame out; resolves once it was taken, or at once when the caller has left. */
  give(frame: F): Promise<void>;
}

/** Who asks for a generation, and what it is done with. */
interface GenerationCall {
  readonly attribution: Attribution;
  readonly paid: PaidRequests;
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** The frames of an answer, for its caller; leaving them, or the signal's abort, is the caller's leaving. */
export interface GenerationFrames<F> extends AsyncIterableIterator<F, void> {
  /** Resolves when the generation has ended, which may be long after its caller has left. Never rejects. */
  readonly ended: Promise<void>;
  /** The caller leaves. Resolves at once, with the end of its frames. */
  return(): Promise<IteratorResult<F, void>>;
}

/** Begins at once. The frames throw DomainError, which names the generation once there is one. */
export function runGeneration<C, F>(steps: GenerationSteps<C, F>, call: GenerationCall): GenerationFrames<F> {
  const id = `${steps.idPrefix}-${randomUUID()}`;
  const handout: FrameHandout<F> = new FrameHandout(call.signal, () =>
    new DomainError(ErrorReason.CANCELLED, "cancelled").withGenerationId(id),
  );
  const ended = live(steps, call, id, handout).then(
    () => handout.end(),
    (thrown: unknown) => handout.fail(thrown),
  );
  call.paid.running.add(ended);
  return Object.assign(handout, { ended });
}

async function live<C, F>(
  steps: GenerationSteps<C, F>,
  { attribution, paid, log }: GenerationCall,
  id: string,
  handout: FrameHandout<F>,
): Promise<void> {
  const { api, model, timeoutMs, idleTimeoutMs } = steps;
  const ownKeys = await paid.ownKeys(attribution.principal.accountId, steps.ownKeySlugs);
  const candidates = steps.candidates(ownKeys);
  const named = (thrown: unknown) => DomainError.from(thrown).withGenerationId(id);
  const deadlineMs = paid.clock.nowMs() + timeoutMs;
  const deadline = new Deadline(handout.left, timeoutMs, idleTimeoutMs); // 4.
  const give = (frame: F) => handout.give(frame);
  const settle = async (hold: PaidRequest, failure: DomainError | undefined) => {
    const end = steps.end({ ...outcomeOf(failure), cancelled: handout.left.aborted });
    reportDoubt(end?.usageDoubt, id, paid, log);
    await hold.end(end);
    return end;
  };
  try {
    const beginning = { api, generationId: id, attribution, model, deadlineMs };
    const hold = await PaidRequest.begin({ ...beginning, ...steps.hold(candidates) }, paid).catch(
      // 1.
      (thrown: unknown) => Promise.reject(named(thrown)),
    );
    const failure = await steps
      .answer(candidates, { id, deadline, deadlineMs, log, give }) // 2., 3.
      .then(() => undefined, named);
    if (failure === undefined) deadline.finish();
    else deadline.end();
    const end = await settle(hold, failure); // 1.
    if (failure !== undefined) throw failure;
    await give(steps.finished(end));
  } finally {
    deadline.end();
  }
}

function outcomeOf(failure: DomainError | undefined): Omit<GenerationOutcome, "cancelled"> {
  if (failure === undefined) return { outcome: Outcome.SUCCEEDED, reason: undefined };
  const { reason } = failure;
  return { outcome: reason === ErrorReason.CANCELLED ? Outcome.CANCELLED : Outcome.FAILED, reason };
}

function reportDoubt(doubt: UsageDoubt | undefined, id: string, paid: PaidRequests, log: Log): void {
  if (doubt === undefined) return;
  paid.onUsageDoubt?.(doubt);
  const { kind, providerSlug, endpointId, reportedNanoUsd, mostNanoUsd } = doubt;
  log.warn(
    {
      generation_id: id,
      provider: providerSlug,
      endpoint_id: endpointId,
      doubt: kind,
      reported_nano_usd: reportedNanoUsd?.toString(),
      most_nano_usd: mostNanoUsd.toString(),
    },
    "the reported usage can't be charged as it stands",
  );
}
