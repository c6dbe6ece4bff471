/**
 * One synthesis: choose endpoints, try them in order, stream the audio of the one that speaks.
 *
 * 1. Nothing is yielded before the first audio is in hand; until then a failure is a plain error.
 * 2. After the first audio no other endpoint is tried, and a failure ends the stream with an error.
 * 3. Aborting `signal` ends the upstream work at once, also when this generator is never resumed.
 * 4. The consumer's pace is the upstream's pace: a chunk is pulled only when the one before it was taken.
 * 5. Credit is held before the first attempt; `finished`, or the error, comes once the usage event is safe. However this
 *    generator ends, also by `return`, its hold is settled or released.
 */
import { randomUUID } from "node:crypto";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Api, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { codePoints } from "../../lib/generation/code-points.ts";
import { Deadline } from "../../lib/generation/deadline.ts";
import type { Attribution } from "../../lib/generation/generation-event.ts";
import { PaidRequest, type PaidRequestEnd, type PaidRequests } from "../../lib/generation/paid-request.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { type AttemptsResult, runAttempts } from "../../providers/attempt.ts";
import { logAttempt } from "../../providers/attempt-log.ts";
import { brokenOff } from "../../providers/broken-off.ts";
import { type Candidate, healthIdOf, ownKeySlugsOf } from "../../providers/candidate.ts";
import type { Catalog, SpeechEndpoint } from "../../providers/catalog.ts";
import { type AudioFormat, ProviderError, type TokenUsage } from "../../providers/contract.ts";
import type { EndpointHealth } from "../../providers/endpoint-health.ts";
import { mostToHold } from "../../providers/most-to-hold.ts";
import type { ProviderSet } from "../../providers/registry.ts";
import { candidatesFor, mostCostOf, planCall } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { type SynthesisEnd, SynthesisRecord } from "./synthesis-record.ts";
import { type Mp3Encoders, transcodePcmToMp3 } from "./transcode.ts";

/** Limits in time of one synthesis, milliseconds. */
export interface SynthesisLimits {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly timeoutMs: number;
}

/** What a synthesis works with. */
export interface SynthesizeDependencies {
  /** Every model that some built-in provider offers. */
  readonly catalog: Catalog;
  readonly providers: ProviderSet;
  readonly health: EndpointHealth;
  readonly limits: SynthesisLimits;
  /** Shared by all syntheses of the process. */
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

const cancelled: SynthesisEnd = { outcome: Outcome.CANCELLED, reason: ErrorReason.CANCELLED };

/** Speaks. Throws DomainError, naming the generation once there is one. */
export async function* synthesize(
  request: SpeechRequest,
  attribution: Attribution,
  dependencies: SynthesizeDependencies,
  signal: AbortSignal,
  log: Log,
): AsyncGenerator<SynthesisFrame, void, undefined> {
  const ownKeys = await ownKeysFor(request, attribution, dependencies);
  const candidates = candidatesFor(request, dependencies, ownKeys);
  const generationId = `gen-tts-${randomUUID()}`;
  const { limits, clock } = dependencies;
  const deadline = new Deadline(signal, limits.timeoutMs, limits.idleTimeoutMs);
  const deadlineMs = clock.nowMs() + limits.timeoutMs;
  const record = new SynthesisRecord(request.input, request.format, dependencies.paid, attribution.span);
  const generation: Generation = { generationId, dependencies, deadline, deadlineMs, signal, log, record };
  let paid: PaidRequest | undefined;
  let voice: Voice | undefined;
  let end = cancelled;
  try {
    paid = await holdCredit(request, attribution, candidates, generation);
    const begun = await begin(request, candidates, generation);
    const { endpoint } = begun;
    voice = begun.value;
    const { format, sampleRateHz, channels, ignoredParameters } = voice;
    yield { kind: "started", generationId, format, sampleRateHz, channels, endpoint, ignoredParameters };
    yield* allAudio(begun, generation);
    voice = undefined;
    deadline.finish();
    recordSpeed(begun, codePoints(request.input), dependencies);
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
    voice?.rest.return?.().catch(() => undefined);
    await paid?.end(record.end(end));
  }
}

/** One synthesis under way. */
interface Generation {
  readonly generationId: string;
  readonly dependencies: SynthesizeDependencies;
  readonly deadline: Deadline;
  /** Wall clock, Unix milliseconds. */
  readonly deadlineMs: number;
  /** The caller's. */
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly record: SynthesisRecord;
}

type Begun = AttemptsResult<Candidate<SpeechEndpoint>, Voice>;

/** The account's own keys at the providers that offer the model. */
function ownKeysFor(
  { model }: SpeechRequest,
  { principal }: Attribution,
  { catalog, providers, paid }: SynthesizeDependencies,
): Promise<ReadonlyMap<string, string>> {
  const offers = catalog.speechModel(model)?.endpoints ?? [];
  const slugs = ownKeySlugsOf(offers, (slug) => providers.takesOwnKeys(slug));
  return paid.ownKeys(principal.accountId, slugs);
}

function holdCredit(
  request: SpeechRequest,
  attribution: Attribution,
  candidates: readonly Candidate<SpeechEndpoint>[],
  { generationId, dependencies, deadlineMs }: Generation,
): Promise<PaidRequest> {
  return PaidRequest.begin(
    {
      api: Api.SPEECH,
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

function begin(
  request: SpeechRequest,
  candidates: readonly Candidate<SpeechEndpoint>[],
  { generationId, dependencies, deadline, deadlineMs, log, record }: Generation,
): Promise<Begun> {
  const { limits, health, clock } = dependencies;
  return runAttempts({
    candidates,
    attempt: (candidate, attemptSignal) => beginSpeaking(candidate, request, dependencies, attemptSignal),
    discard: async ({ rest }) => void (await rest.return?.()),
    firstOutputTimeoutMs: limits.firstByteTimeoutMs,
    signal: deadline.signal,
    deadlineMs,
    health,
    clock,
    onAttempt(attempt) {
      record.attempted(attempt);
      logAttempt(log, generationId, attempt);
    },
  });
}

/** The first audio, which is in hand, and all that follows it. */
async function* allAudio(
  begun: Begun,
  generation: Generation,
): AsyncGenerator<SynthesisFrame, void, undefined> {
  const { first, rest, usage } = begun.value;
  const { record } = generation;
  record.reportsUsageBy(usage);
  yield* audioFrames(first, record);
  try {
    for (;;) {
      const next = await generation.deadline.waitFor(rest.next());
      if (next.done) return;
      yield* audioFrames(next.value, record);
    }
  } catch (thrown) {
    const { deadline, signal, generationId, log, dependencies } = generation;
    const { health, clock } = dependencies;
    const { timedOut, upstreamSlow } = deadline;
    const { error, attempts } = brokenOff({
      thrown,
      attempts: begun.attempts,
      timedOut,
      upstreamSlow,
      cancelled: signal.aborted,
      generationId,
      health,
      clock,
      log,
    });
    record.allEnded(attempts);
    throw error;
  }
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

function recordSpeed(
  { attempts, endpoint }: Begun,
  inputCharacters: number,
  { health, clock }: SynthesizeDependencies,
) {
  const winner = attempts.at(-1);
  if (winner === undefined) return;
  const seconds = (clock.monotonicMs() - winner.startedMonotonicMs) / 1000;
  health.recordThroughput(healthIdOf(endpoint), inputCharacters / seconds);
}

/** An endpoint whose first audio is in hand. */
interface Voice {
  readonly format: AudioFormat;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly ignoredParameters: readonly string[];
  readonly first: Uint8Array;
  readonly rest: AsyncIterator<Uint8Array>;
  /** Tokens that the upstream reported, once the audio has ended. */
  usage(): TokenUsage | undefined;
}

async function beginSpeaking(
  endpoint: Candidate<SpeechEndpoint>,
  request: SpeechRequest,
  { providers, encoders }: SynthesizeDependencies,
  signal: AbortSignal,
): Promise<Voice> {
  const { adapter, connection } = providers.speech(endpoint.providerSlug, endpoint.ownKey);
  const { call, transcode, ignoredParameters } = planCall(endpoint, request);
  const answer = await adapter.synthesize(call, { signal, connection });
  const audio = transcode ? transcodePcmToMp3({ ...answer, encoders }) : answer.audio;
  const rest = audio[Symbol.asyncIterator]();
  const first = await rest.next();
  if (first.done) throw new ProviderError("bad_answer", "the answer has no audio");
  const { sampleRateHz, channels } = answer;
  const usage = () => answer.usage();
  return {
    format: request.format,
    sampleRateHz,
    channels,
    ignoredParameters,
    first: first.value,
    rest,
    usage,
  };
}

function* audioFrames(bytes: Uint8Array, record: SynthesisRecord): Generator<SynthesisFrame> {
  for (let start = 0; start < bytes.length; start += maxFrameBytes) {
    const frame = bytes.subarray(start, start + maxFrameBytes);
    record.handedOut(frame);
    yield { kind: "audio", bytes: frame };
  }
}
