/**
 * One generation: choose endpoints, bring in references, try the endpoints in order, hand out the images of the one
 * that draws.
 *
 * 1. Effects in this order: what the catalogue can refuse, references, attempts. Nothing is fetched for a request that
 *    no endpoint can serve, and no upstream hears of one whose references are refused.
 * 2. Nothing is yielded before the first output is in hand, but for a streaming answer that was accepted and stays
 *    silent for 10 s; until then a failure is a plain error and another endpoint may be tried. After it, never.
 * 3. A provider that fails after a whole image has made fewer than were asked for: those stand, and the answer ends
 *    well. Without a whole image the failure ends the stream with an error.
 * 4. An image is begun only once all of its final bytes are in hand.
 * 5. Aborting `signal` ends the upstream work at once, also when this generator is never resumed.
 * 6. The consumer's pace is the upstream's: an output is asked for only when the one before it was taken, and an image
 *    that was taken is kept by nobody here.
 * 7. Credit is held before references are fetched and before the first attempt; `finished`, or the error, comes once the
 *    usage event is safe. However this generator ends, also by `return`, its hold is settled or released.
 */
import { randomUUID } from "node:crypto";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Api, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { Deadline } from "../../lib/generation/deadline.ts";
import type { Attribution } from "../../lib/generation/generation-event.ts";
import { maxImageDataBytes } from "../../lib/generation/image-messages.ts";
import { PaidRequest, type PaidRequestEnd, type PaidRequests } from "../../lib/generation/paid-request.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { type AttemptsResult, runAttempts } from "../../providers/attempt.ts";
import { logAttempt } from "../../providers/attempt-log.ts";
import { brokenOff } from "../../providers/broken-off.ts";
import { type Candidate, healthIdOf, ownKeySlugsOf } from "../../providers/candidate.ts";
import type { Catalog, ImageEndpoint } from "../../providers/catalog.ts";
import { type ImageOutput, ProviderError } from "../../providers/contract.ts";
import type { EndpointHealth } from "../../providers/endpoint-health.ts";
import { mostToHold } from "../../providers/most-to-hold.ts";
import { beginDrawing, type Drawing, type DrawingDependencies } from "./drawing.ts";
import { type GenerationOutcome, GenerationRecord, type HeldImage } from "./generation-record.ts";
import type { ImageRequest } from "./image-request.ts";
import { candidatesFor, mostCostOf } from "./plan.ts";
import { type LoadReferences, loadRequestImages } from "./request-images.ts";

/** Limits in time of one generation, milliseconds. */
export interface GenerationLimits {
  readonly timeoutMs: number;
  /** After so long a streaming answer begins without an output, so that clients hear something; 10 s unless given. */
  readonly longestSilenceMs?: number;
}

/** What a generation works with. */
export interface GenerateDependencies extends DrawingDependencies {
  /** Every model that some built-in provider offers. */
  readonly catalog: Catalog;
  readonly health: EndpointHealth;
  readonly limits: GenerationLimits;
  readonly clock: Clock;
  readonly paid: PaidRequests;
  readonly loadReferences: LoadReferences;
}

/** A frame of the answer, before it is put on the wire. */
export type GenerationFrame =
  | {
      readonly kind: "started";
      readonly generationId: string;
      readonly endpoint: ImageEndpoint;
      readonly streaming: boolean;
      readonly ignoredParameters: readonly string[];
    }
  | Exclude<ImageOutput, { kind: "image" }>
  | {
      readonly kind: "image_start";
      readonly index: number;
      readonly width: number;
      readonly height: number;
      readonly mediaType: string;
      readonly sizeBytes: number;
    }
  /** At most 1 MiB of the image begun last. */
  | { readonly kind: "image_data"; readonly bytes: Uint8Array }
  | {
      readonly kind: "finished";
      readonly promptTokens: bigint;
      readonly completionTokens: bigint;
      readonly costNanoUsd: bigint;
      readonly byok: boolean;
      /** Those of the tokens that stand for images. */
      readonly promptImageTokens: bigint;
      readonly completionImageTokens: bigint;
    };

const defaultLongestSilenceMs = 10_000;

const cancelled: GenerationOutcome = { outcome: Outcome.CANCELLED, reason: ErrorReason.CANCELLED };

/** Draws. Throws DomainError, naming the generation once there is one. */
export async function* generate(
  request: ImageRequest,
  attribution: Attribution,
  dependencies: GenerateDependencies,
  signal: AbortSignal,
  log: Log,
): AsyncGenerator<GenerationFrame, void, undefined> {
  const ownKeys = await ownKeysFor(request, attribution, dependencies);
  const candidates = candidatesFor(request, dependencies, ownKeys);
  const generationId = `gen-img-${randomUUID()}`;
  const { limits, clock } = dependencies;
  const deadlineMs = clock.nowMs() + limits.timeoutMs;
  const deadline = new Deadline(signal, limits.timeoutMs);
  const record = new GenerationRecord(request, dependencies.paid, attribution.span);
  const generation: Generation = { generationId, dependencies, deadline, deadlineMs, signal, log, record };
  let paid: PaidRequest | undefined;
  let outputs: Drawing["outputs"] | undefined;
  let end = cancelled;
  try {
    paid = await holdCredit(request, attribution, candidates, generation);
    const begun = await begin(request, candidates, generation);
    const { streaming, ignoredParameters } = begun.value;
    outputs = begun.value.outputs;
    record.streaming = streaming;
    yield { kind: "started", generationId, endpoint: begun.endpoint, streaming, ignoredParameters };
    yield* answerFrames(outputs, begun, generation);
    outputs = undefined;
    deadline.finish();
    end = { outcome: Outcome.SUCCEEDED, reason: undefined };
    const ended = record.end(end);
    await paid.end(ended);
    yield finishedFrame(ended);
  } catch (thrown) {
    const error = DomainError.from(thrown).withGenerationId(generationId);
    if (error.reason !== ErrorReason.CANCELLED) end = { outcome: Outcome.FAILED, reason: error.reason };
    throw error;
  } finally {
    deadline.end();
    outputs?.return?.().catch(() => undefined);
    await paid?.end(record.end(end));
  }
}

/** One generation under way. */
interface Generation {
  readonly generationId: string;
  readonly dependencies: GenerateDependencies;
  readonly deadline: Deadline;
  /** Wall clock, Unix milliseconds. */
  readonly deadlineMs: number;
  /** The caller's. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly record: GenerationRecord;
}

type Begun = AttemptsResult<Candidate<ImageEndpoint>, Drawing>;

/** The account's own keys at the providers that offer the model. */
function ownKeysFor(
  { model }: ImageRequest,
  { principal }: Attribution,
  { catalog, providers, paid }: GenerateDependencies,
): Promise<ReadonlyMap<string, string>> {
  const offers = catalog.imageModel(model)?.endpoints ?? [];
  const slugs = ownKeySlugsOf(offers, (slug) => providers.takesOwnKeys(slug));
  return paid.ownKeys(principal.accountId, slugs);
}

function holdCredit(
  request: ImageRequest,
  attribution: Attribution,
  candidates: readonly Candidate<ImageEndpoint>[],
  { generationId, dependencies, deadlineMs }: Generation,
): Promise<PaidRequest> {
  return PaidRequest.begin(
    {
      api: Api.IMAGE,
      generationId,
      attribution,
      model: request.model,
      deadlineMs,
      ...mostToHold(
        candidates,
        (candidate) => mostCostOf(candidate, request),
        dependencies.paid.byokFeePercent,
      ),
    },
    dependencies.paid,
  );
}

async function begin(
  request: ImageRequest,
  candidates: readonly Candidate<ImageEndpoint>[],
  { dependencies, deadline, deadlineMs, generationId, log, record }: Generation,
): Promise<Begun> {
  const { health, clock, limits } = dependencies;
  const { signal } = deadline;
  const startByMs = clock.monotonicMs() + (limits.longestSilenceMs ?? defaultLongestSilenceMs);
  const references = await loadRequestImages(request, dependencies.loadReferences, signal);
  return await runAttempts({
    candidates,
    attempt: (candidate, attemptSignal) =>
      beginDrawing(candidate, request, references, dependencies, { signal: attemptSignal, startByMs }),
    discard: async ({ outputs }) => void (await outputs.return?.()),
    firstOutputTimeoutMs: limits.timeoutMs,
    signal,
    deadlineMs,
    health,
    clock,
    onAttempt(attempt) {
      record.attempted(attempt);
      logAttempt(log, generationId, attempt);
    },
  });
}

/** The outputs of the endpoint that draws. */
async function* answerFrames(
  outputs: Drawing["outputs"],
  begun: Begun,
  generation: Generation,
): AsyncGenerator<GenerationFrame, void, undefined> {
  const { record } = generation;
  for (;;) {
    let next: IteratorResult<ImageOutput, undefined>;
    try {
      next = await generation.deadline.waitFor(outputs.next());
    } catch (thrown) {
      const isTheirs = thrown instanceof ProviderError && !endedHere(generation);
      const error = failureOf(thrown, begun, generation);
      if (record.images > 0 && isTheirs) return;
      throw error;
    }
    if (next.done) {
      recordSpeed(begun, record.images, generation.dependencies);
      record.usedTokens(begun.value.usage());
      return;
    }
    if (next.value.kind === "image") yield* imageFrames(next.value, await record.held(next.value));
    else yield next.value;
  }
}

function failureOf(thrown: unknown, { attempts }: Begun, generation: Generation): DomainError {
  const { deadline, signal, generationId, log, dependencies, record } = generation;
  const { health, clock } = dependencies;
  const { timedOut, upstreamSlow } = deadline;
  const broken = brokenOff({
    thrown,
    attempts,
    timedOut,
    upstreamSlow,
    cancelled: signal.aborted,
    generationId,
    health,
    clock,
    log,
  });
  record.allEnded(broken.attempts);
  return broken.error;
}

function finishedFrame(end: PaidRequestEnd): GenerationFrame {
  return {
    kind: "finished",
    promptTokens: end?.tokens.prompt ?? 0n,
    completionTokens: end?.tokens.completion ?? 0n,
    costNanoUsd: end?.costNanoUsd ?? 0n,
    byok: end?.byok ?? false,
    promptImageTokens: end?.tokens.imagePrompt ?? 0n,
    completionImageTokens: end?.tokens.imageCompletion ?? 0n,
  };
}

/** Whether the caller or our own time limit ended the work. */
function endedHere({ deadline, signal }: Generation): boolean {
  return deadline.timedOut || signal.aborted;
}

function* imageFrames(
  { bytes, mediaType }: Extract<ImageOutput, { kind: "image" }>,
  held: HeldImage,
): Generator<GenerationFrame> {
  yield { kind: "image_start", ...held, mediaType, sizeBytes: bytes.length };
  for (let start = 0; start < bytes.length; start += maxImageDataBytes) {
    yield { kind: "image_data", bytes: bytes.subarray(start, start + maxImageDataBytes) };
  }
}

function recordSpeed({ attempts, endpoint }: Begun, images: number, dependencies: GenerateDependencies) {
  const { health, clock } = dependencies;
  const winner = attempts.at(-1);
  if (winner === undefined) return;
  health.recordThroughput(
    healthIdOf(endpoint),
    images / ((clock.monotonicMs() - winner.startedMonotonicMs) / 1000),
  );
}
