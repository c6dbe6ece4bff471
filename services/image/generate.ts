/**
 * What is particular to images in the life of a generation (lib/generation/run-generation.ts).
 *
 * 1. Effects in this order: what the catalogue can refuse, the hold, references, attempts. Nothing is fetched for a
 *    request that no endpoint can serve, and no upstream hears of one whose references are refused.
 * 2. A streaming answer that was accepted and stays silent for 10 s begins without an output; after that, as after the
 *    first output, no other endpoint is tried.
 * 3. A provider that fails after a whole image has made fewer than were asked for: those stand, and the answer ends
 *    well. Without a whole image the failure ends the frames with an error.
 * 4. An image is begun only once all of its final bytes are in hand, and one that was taken is kept by nobody here.
 * 5. What comes of it is known when the upstream's answer has ended: images count one by one, whoever takes them.
 */
import { Api } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { Attribution } from "../../lib/generation/generation-event.ts";
import type { PaidRequestEnd, PaidRequests } from "../../lib/generation/paid-request.ts";
import {
  type Generation,
  type GenerationFrames,
  runGeneration,
} from "../../lib/generation/run-generation.ts";
import { maxImageDataBytes } from "../../lib/limits/image-messages.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { Log } from "../../lib/runtime/log.ts";
import type { Catalog, ImageEndpoint } from "../../providers/catalog/catalog.ts";
import type { ImageOutput } from "../../providers/contract.ts";
import { type Candidate, ownKeySlugsOf } from "../../providers/routing/candidate.ts";
import type { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { GenerationRecord } from "../../providers/routing/generation-record.ts";
import { mostToHold } from "../../providers/routing/most-to-hold.ts";
import { type WinningAttempt, winningAttempt } from "../../providers/routing/winning-attempt.ts";
import { DeliveredImages } from "./delivered-images.ts";
import { beginDrawing, type Drawing, type DrawingDependencies } from "./drawing.ts";
import type { ImageRequest } from "./image-request.ts";
import { candidatesFor, mostCostOf, takingReferences } from "./plan.ts";
import { type LoadReferences, loadRequestImages } from "./references/request-images.ts";

/** Limits in time of one generation, milliseconds. */
export interface GenerationLimits {
  readonly timeoutMs: number;
  /** After so long a streaming answer begins without an output, so that clients hear something; 10 s unless given. */
  readonly longestSilenceMs?: number;
}

/** Of the process, but for `room` and `loadReferences`, which are the caller's. */
export interface GenerateDependencies extends DrawingDependencies {
  /** Every model that some built-in provider offers. */
  readonly catalog: Catalog;
  readonly health: EndpointHealth;
  /** From 0 to below 1, as Math.random. */
  random(): number;
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
      readonly unrecognizedPromptWords: readonly string[];
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

/** Draws. The frames throw DomainError, naming the generation once there is one. */
export function generate(
  request: ImageRequest,
  attribution: Attribution,
  dependencies: GenerateDependencies,
  signal: AbortSignal,
  log: Log,
): GenerationFrames<GenerationFrame> {
  const { catalog, providers, limits, paid } = dependencies;
  const offers = catalog.imageModel(request.model)?.endpoints ?? [];
  const delivered = new DeliveredImages(request);
  const record = new GenerationRecord<ImageEndpoint>("image", delivered, paid, attribution.span);
  return runGeneration<readonly Candidate<ImageEndpoint>[], GenerationFrame>(
    {
      api: Api.IMAGE,
      idPrefix: "gen-img",
      model: request.model,
      timeoutMs: limits.timeoutMs,
      ownKeySlugs: ownKeySlugsOf(offers, (slug) => providers.takesOwnKeys(slug)),
      candidates: (ownKeys) => candidatesFor(request, dependencies, ownKeys), // 1.
      hold: (candidates) =>
        mostToHold(candidates, (candidate) => mostCostOf(candidate, request), paid.byokFeePercent),
      answer: (candidates, generation) =>
        draw({ request, candidates, generation, dependencies, delivered, record }),
      end: (outcome) => record.end(outcome),
      finished: finishedFrame,
    },
    { attribution, paid, signal, log },
  );
}

interface Work {
  readonly request: ImageRequest;
  readonly candidates: readonly Candidate<ImageEndpoint>[];
  readonly generation: Generation<GenerationFrame>;
  readonly dependencies: GenerateDependencies;
  readonly delivered: DeliveredImages;
  readonly record: GenerationRecord<ImageEndpoint>;
}

async function draw(work: Work): Promise<void> {
  const { generation, delivered, record } = work;
  const winner = await begin(work);
  const { streaming, ignoredParameters, unrecognizedPromptWords, outputs, report } = winner.value;
  delivered.streamed = streaming;
  record.reportsBy(report);
  try {
    const { endpoint } = winner;
    await generation.give({
      kind: "started",
      generationId: generation.id,
      endpoint,
      streaming,
      ignoredParameters,
      unrecognizedPromptWords,
    });
    while (await handOutNext(winner, outputs, delivered, generation)); // 5.
    if (!winner.failedByItself) winner.recordAnswer(delivered.count);
  } finally {
    outputs.return?.().catch(() => undefined);
  }
}

async function begin({ request, candidates, generation, dependencies, delivered, record }: Work) {
  const { health, clock, random, limits } = dependencies;
  const { signal } = generation.deadline;
  const startByMs = clock.monotonicMs() + (limits.longestSilenceMs ?? defaultLongestSilenceMs); // 2.
  const references = await loadRequestImages(request, dependencies.loadReferences, signal); // 1.
  delivered.startsFrom(references);
  return await winningAttempt<ImageEndpoint, Drawing>({
    generation,
    record,
    candidates: takingReferences(candidates, references),
    attempt: (candidate, bounds) =>
      beginDrawing(candidate, request, references, dependencies, { ...bounds, startByMs }),
    discard: async ({ outputs }) => void (await outputs.return?.()),
    firstOutputTimeoutMs: limits.timeoutMs,
    health,
    clock,
    random,
  });
}

/** False when there is none left. A function of its own, so that nothing keeps an image while the next is awaited. */
async function handOutNext(
  winner: WinningAttempt<ImageEndpoint, Drawing>,
  outputs: Drawing["outputs"],
  delivered: DeliveredImages,
  { give }: Generation<GenerationFrame>,
): Promise<boolean> {
  let output: ImageOutput | undefined;
  try {
    output = await winner.next(outputs);
  } catch (thrown) {
    if (delivered.count > 0 && winner.failedByItself) return false; // 3.
    throw thrown;
  }
  if (output === undefined) return false;
  if (output.kind !== "image") {
    await give(output);
    return true;
  }
  const { bytes, mediaType } = output;
  const held = await delivered.held(bytes);
  await give({ kind: "image_start", ...held, mediaType, sizeBytes: bytes.length }); // 4.
  for (let start = 0; start < bytes.length; start += maxImageDataBytes) {
    await give({ kind: "image_data", bytes: bytes.subarray(start, start + maxImageDataBytes) });
  }
  return true;
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
