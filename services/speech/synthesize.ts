/**
 * What is particular to speech in the life of a generation (lib/generation/run-generation.ts).
 *
 * 1. After the first audio no other endpoint is tried, and a failure ends the frames with an error.
 * 2. What comes of it is known with the first usable audio; where the upstream bills tokens, with the end of its answer.
 */
import { Api } from "../../gen/media/event/v1/generation_event_pb.ts";
import { codePoints } from "../../lib/generation/code-points.ts";
import type { Attribution } from "../../lib/generation/generation-event.ts";
import type { PaidRequestEnd, PaidRequests } from "../../lib/generation/paid-request.ts";
import {
  type Generation,
  type GenerationFrames,
  runGeneration,
} from "../../lib/generation/run-generation.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { Log } from "../../lib/runtime/log.ts";
import type { Catalog, SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { type AudioFormat, ProviderError, type UpstreamReport } from "../../providers/contract.ts";
import type { ProviderSet } from "../../providers/registry.ts";
import type { AttemptBounds } from "../../providers/routing/attempt.ts";
import { type Candidate, ownKeySlugsOf } from "../../providers/routing/candidate.ts";
import type { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { GenerationRecord } from "../../providers/routing/generation-record.ts";
import { mostToHold } from "../../providers/routing/most-to-hold.ts";
import { winningAttempt } from "../../providers/routing/winning-attempt.ts";
import { DeliveredSpeech } from "./delivered-speech.ts";
import { candidatesFor, mostCostOf, planCall } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { type Mp3Encoders, transcodePcmToMp3 } from "./transcode.ts";

/** Limits in time of one synthesis, milliseconds. */
export interface SynthesisLimits {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly timeoutMs: number;
}

/** Shared by all syntheses of the process. */
export interface SynthesizeDependencies {
  /** Every model that some built-in provider offers. */
  readonly catalog: Catalog;
  readonly providers: ProviderSet;
  readonly health: EndpointHealth;
  /** From 0 to below 1, as Math.random. */
  random(): number;
  readonly limits: SynthesisLimits;
  readonly encoders: Mp3Encoders;
  readonly clock: Clock;
  readonly paid: PaidRequests;
}

/** A frame of the answer, before it is put on the wire. */
export type SynthesisFrame =
  | {
      readonly kind: "started";
      readonly generationId: string;
      readonly format: AudioFormat;
      readonly sampleRateHz: number;
      readonly channels: number;
      readonly endpoint: SpeechEndpoint;
      readonly ignoredParameters: readonly string[];
    }
  | { readonly kind: "audio"; readonly bytes: Uint8Array }
  | {
      readonly kind: "finished";
      readonly inputCharacters: bigint;
      readonly promptTokens: bigint;
      readonly completionTokens: bigint;
      readonly costNanoUsd: bigint;
    };

/** Largest audio frame; well under every message limit. */
const maxFrameBytes = 256 * 1024;

/** Speaks. The frames throw DomainError, naming the generation once there is one. */
export function synthesize(
  request: SpeechRequest,
  attribution: Attribution,
  dependencies: SynthesizeDependencies,
  signal: AbortSignal,
  log: Log,
): GenerationFrames<SynthesisFrame> {
  const { catalog, providers, limits, paid } = dependencies;
  const offers = catalog.speechModel(request.model)?.endpoints ?? [];
  const delivered = new DeliveredSpeech(request);
  const record = new GenerationRecord<SpeechEndpoint>("speech", delivered, paid, attribution.span);
  return runGeneration<readonly Candidate<SpeechEndpoint>[], SynthesisFrame>(
    {
      api: Api.SPEECH,
      idPrefix: "gen-tts",
      model: request.model,
      timeoutMs: limits.timeoutMs,
      idleTimeoutMs: limits.idleTimeoutMs,
      ownKeySlugs: ownKeySlugsOf(offers, (slug) => providers.takesOwnKeys(slug)),
      candidates: (ownKeys) => candidatesFor(request, dependencies, ownKeys),
      hold: (candidates) =>
        mostToHold(candidates, (candidate) => mostCostOf(candidate, request), paid.byokFeePercent),
      answer: (candidates, generation) =>
        speak({ request, candidates, generation, dependencies, delivered, record }),
      end: (outcome) => record.end(outcome),
      finished: finishedFrame,
    },
    { attribution, paid, signal, log },
  );
}

interface Speaking {
  readonly request: SpeechRequest;
  readonly candidates: readonly Candidate<SpeechEndpoint>[];
  readonly generation: Generation<SynthesisFrame>;
  readonly dependencies: SynthesizeDependencies;
  readonly delivered: DeliveredSpeech;
  readonly record: GenerationRecord<SpeechEndpoint>;
}

async function speak(speaking: Speaking): Promise<void> {
  const { request, candidates, generation, dependencies, delivered, record } = speaking;
  const { limits, health, clock, random } = dependencies;
  const winner = await winningAttempt<SpeechEndpoint, Voice>({
    // 1.
    generation,
    record,
    candidates,
    attempt: (endpoint, bounds) => beginSpeaking(endpoint, request, dependencies, bounds),
    discard: async ({ rest }) => void (await rest.return?.()),
    firstOutputTimeoutMs: limits.firstByteTimeoutMs,
    health,
    clock,
    random,
  });
  const { endpoint, value } = winner;
  const { format, sampleRateHz, channels, ignoredParameters, first, rest, report } = value;
  record.reportsBy(report);
  delivered.begins({ endpoint, sampleRateHz, channels });
  try {
    const { id: generationId } = generation;
    await generation.give({
      kind: "started",
      generationId,
      format,
      sampleRateHz,
      channels,
      endpoint,
      ignoredParameters,
    });
    for (let audio: Uint8Array | undefined = first; audio !== undefined; audio = await winner.next(rest)) {
      for (let start = 0; start < audio.length; start += maxFrameBytes)
        await handOut(audio.subarray(start, start + maxFrameBytes), endpoint, delivered, generation);
    }
    winner.recordAnswer(codePoints(request.input));
  } finally {
    rest.return?.().catch(() => undefined);
  }
}

function handOut(
  bytes: Uint8Array,
  endpoint: SpeechEndpoint,
  delivered: DeliveredSpeech,
  { deadline, give }: Generation<SynthesisFrame>,
): Promise<void> {
  delivered.handedOut(bytes);
  if (endpoint.cancel !== "free" && delivered.isPricedAt(endpoint)) deadline.outcomeKnown(); // 2.
  return give({ kind: "audio", bytes });
}

function finishedFrame(end: PaidRequestEnd): SynthesisFrame {
  return {
    kind: "finished",
    inputCharacters: end?.units.inputCharacters ?? 0n,
    promptTokens: end?.tokens.prompt ?? 0n,
    completionTokens: end?.tokens.completion ?? 0n,
    costNanoUsd: end?.costNanoUsd ?? 0n,
  };
}

/** An endpoint whose first audio is in hand. */
interface Voice {
  readonly format: AudioFormat;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly ignoredParameters: readonly string[];
  readonly first: Uint8Array;
  readonly rest: AsyncIterator<Uint8Array>;
  /** What the upstream reported, once the audio has ended. */
  report(): UpstreamReport | undefined;
}

/** Asks an endpoint. Resolves with its first audio in hand; throws ProviderError. */
export async function beginSpeaking(
  endpoint: Candidate<SpeechEndpoint>,
  request: SpeechRequest,
  { providers, encoders }: Pick<SynthesizeDependencies, "providers" | "encoders">,
  bounds: AttemptBounds,
): Promise<Voice> {
  const { adapter, connection } = await providers.speech(endpoint.providerSlug, endpoint);
  const { call, transcode, ignoredParameters } = planCall(endpoint, request);
  const answer = await adapter.synthesize(call, { ...bounds, connection });
  const audio = transcode ? transcodePcmToMp3({ ...answer, encoders }) : answer.audio;
  const rest = audio[Symbol.asyncIterator]();
  const first = await rest.next();
  if (first.done) throw new ProviderError("bad_answer", "the answer has no audio");
  const { sampleRateHz, channels } = answer;
  const report = () => answer.report();
  return {
    format: request.format,
    sampleRateHz,
    channels,
    ignoredParameters,
    first: first.value,
    rest,
    report,
  };
}
