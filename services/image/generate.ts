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
 */
import { randomUUID } from "node:crypto";
import { Deadline } from "../../lib/generation/deadline.ts";
import { maxImageDataBytes } from "../../lib/generation/image-messages.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { type AttemptsResult, runAttempts } from "../../providers/attempt.ts";
import { logAttempt } from "../../providers/attempt-log.ts";
import { brokenOff } from "../../providers/broken-off.ts";
import type { Catalog, ImageEndpoint } from "../../providers/catalog.ts";
import { type ImageOutput, ProviderError, type ReferenceImage } from "../../providers/contract.ts";
import type { EndpointHealth } from "../../providers/endpoint-health.ts";
import { beginDrawing, type Drawing, type DrawingDependencies } from "./drawing.ts";
import type { ImageRequest } from "./image-request.ts";
import { candidatesFor } from "./plan.ts";
import type { ReferenceSource } from "./references.ts";

/** Limits in time of one generation, milliseconds. */
export interface GenerationLimits {
  readonly timeoutMs: number;
  /** After so long a streaming answer begins without an output, so that clients hear something; 10 s unless given. */
  readonly longestSilenceMs?: number;
}

/** What a generation works with. */
export interface GenerateDependencies extends DrawingDependencies {
  /** Only what can be used now. */
  readonly catalog: Catalog;
  readonly health: EndpointHealth;
  readonly limits: GenerationLimits;
  readonly clock: Clock;
  /** Fetches and checks; throws DomainError. */
  loadReferences(
    sources: readonly ReferenceSource[],
    signal: AbortSignal,
  ): Promise<readonly ReferenceImage[]>;
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
      readonly mediaType: string;
      readonly sizeBytes: number;
    }
  /** At most 1 MiB of the image begun last. */
  | { readonly kind: "image_data"; readonly bytes: Uint8Array }
  | { readonly kind: "finished"; readonly promptTokens: number; readonly completionTokens: number };

const defaultLongestSilenceMs = 10_000;

/** Draws. Throws DomainError, naming the generation once there is one. */
export async function* generate(
  request: ImageRequest,
  dependencies: GenerateDependencies,
  signal: AbortSignal,
  log: Log,
): AsyncGenerator<GenerationFrame, void, undefined> {
  const candidates = candidatesFor(request, dependencies);
  const generationId = `gen-img-${randomUUID()}`;
  const { limits, clock } = dependencies;
  const deadlineMs = clock.nowMs() + limits.timeoutMs;
  const deadline = new Deadline(signal, limits.timeoutMs);
  const generation: Generation = { generationId, dependencies, deadline, deadlineMs, signal, log };
  let outputs: Drawing["outputs"] | undefined;
  try {
    const begun = await begin(request, candidates, generation);
    const { streaming, ignoredParameters, usage } = begun.value;
    outputs = begun.value.outputs;
    yield { kind: "started", generationId, endpoint: begun.endpoint, streaming, ignoredParameters };
    const ended = yield* answerFrames(outputs, begun, generation);
    outputs = undefined;
    deadline.finish();
    const tokens = ended === "whole" ? usage() : undefined;
    yield {
      kind: "finished",
      promptTokens: tokens?.prompt ?? 0,
      completionTokens: tokens?.completion ?? 0,
    };
  } catch (thrown) {
    throw DomainError.from(thrown).withGenerationId(generationId);
  } finally {
    deadline.end();
    outputs?.return?.().catch(() => undefined);
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
}

type Begun = AttemptsResult<ImageEndpoint, Drawing>;

async function begin(
  request: ImageRequest,
  candidates: readonly ImageEndpoint[],
  { dependencies, deadline, deadlineMs, generationId, log }: Generation,
): Promise<Begun> {
  const { health, clock, limits } = dependencies;
  const { signal } = deadline;
  const startByMs = clock.monotonicMs() + (limits.longestSilenceMs ?? defaultLongestSilenceMs);
  const references =
    request.references.length === 0 ? [] : await dependencies.loadReferences(request.references, signal);
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
    onAttempt: (record) => logAttempt(log, generationId, record),
  });
}

/** The outputs of the endpoint that draws; says whether they ended by themselves or after some of the images. */
async function* answerFrames(
  outputs: Drawing["outputs"],
  begun: Begun,
  generation: Generation,
): AsyncGenerator<GenerationFrame, "whole" | "short", undefined> {
  let images = 0;
  for (;;) {
    let next: IteratorResult<ImageOutput, undefined>;
    try {
      next = await generation.deadline.waitFor(outputs.next());
    } catch (thrown) {
      const isTheirs = thrown instanceof ProviderError && !endedHere(generation);
      const error = failureOf(thrown, begun, generation);
      if (images > 0 && isTheirs) return "short";
      throw error;
    }
    if (next.done) {
      recordSpeed(begun, images, generation.dependencies);
      return "whole";
    }
    if (next.value.kind === "image") yield* imageFrames(next.value, images++);
    else yield next.value;
  }
}

function failureOf(thrown: unknown, { attempts }: Begun, generation: Generation): DomainError {
  const { deadline, signal, generationId, log, dependencies } = generation;
  const { health, clock } = dependencies;
  const { timedOut, upstreamSlow } = deadline;
  return brokenOff({
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
}

/** Whether the caller or our own time limit ended the work. */
function endedHere({ deadline, signal }: Generation): boolean {
  return deadline.timedOut || signal.aborted;
}

function* imageFrames(
  { bytes, mediaType }: Extract<ImageOutput, { kind: "image" }>,
  index: number,
): Generator<GenerationFrame> {
  yield { kind: "image_start", index, mediaType, sizeBytes: bytes.length };
  for (let start = 0; start < bytes.length; start += maxImageDataBytes) {
    yield { kind: "image_data", bytes: bytes.subarray(start, start + maxImageDataBytes) };
  }
}

function recordSpeed({ attempts, endpoint }: Begun, images: number, dependencies: GenerateDependencies) {
  const { health, clock } = dependencies;
  const winner = attempts.at(-1);
  if (winner === undefined) return;
  health.recordThroughput(endpoint.id, images / ((clock.monotonicMs() - winner.startedMonotonicMs) / 1000));
}
