/**
 * One synthesis: choose endpoints, try them in order, stream the audio of the one that speaks.
 *
 * 1. Nothing is yielded before the first audio is in hand; until then a failure is a plain error.
 * 2. After the first audio no other endpoint is tried, and a failure ends the stream with an error.
 * 3. Aborting `signal` ends the upstream work at once, also when this generator is never resumed.
 * 4. The consumer's pace is the upstream's pace: a chunk is pulled only when the one before it was taken.
 */
import { randomUUID } from "node:crypto";
import { codePoints } from "../../lib/generation/code-points.ts";
import { Deadline } from "../../lib/generation/deadline.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { type AttemptsResult, runAttempts } from "../../providers/attempt.ts";
import { logAttempt } from "../../providers/attempt-log.ts";
import { brokenOff } from "../../providers/broken-off.ts";
import type { Catalog, SpeechEndpoint } from "../../providers/catalog.ts";
import { type AudioFormat, ProviderError } from "../../providers/contract.ts";
import type { EndpointHealth } from "../../providers/endpoint-health.ts";
import type { ProviderSet } from "../../providers/registry.ts";
import { candidatesFor, planCall } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { type Mp3Encoders, transcodePcmToMp3 } from "./transcode.ts";

/** Limits in time of one synthesis, milliseconds. */
export interface SynthesisLimits {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly timeoutMs: number;
}

/** What a synthesis works with. */
export interface SynthesizeDependencies {
  /** Only what can be used now. */
  readonly catalog: Catalog;
  readonly providers: ProviderSet;
  readonly health: EndpointHealth;
  readonly limits: SynthesisLimits;
  /** Shared by all syntheses of the process. */
  readonly encoders: Mp3Encoders;
  readonly clock: Clock;
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
  | { readonly kind: "finished"; readonly inputCharacters: number };

/** Largest audio frame; well under every message limit. */
const maxFrameBytes = 256 * 1024;

/** Speaks. Throws DomainError, naming the generation once there is one. */
export async function* synthesize(
  request: SpeechRequest,
  dependencies: SynthesizeDependencies,
  signal: AbortSignal,
  log: Log,
): AsyncGenerator<SynthesisFrame, void, undefined> {
  const candidates = candidatesFor(request, dependencies);
  const generationId = `gen-tts-${randomUUID()}`;
  const { limits, health, clock } = dependencies;
  const deadline = new Deadline(signal, limits.timeoutMs, limits.idleTimeoutMs);
  const generation: Generation = { generationId, dependencies, deadline, signal, log };
  let voice: Voice | undefined;
  try {
    const begun = await runAttempts({
      candidates,
      attempt: (candidate, attemptSignal) => beginSpeaking(candidate, request, dependencies, attemptSignal),
      discard: async ({ rest }) => void (await rest.return?.()),
      firstOutputTimeoutMs: limits.firstByteTimeoutMs,
      signal: deadline.signal,
      deadlineMs: clock.nowMs() + limits.timeoutMs,
      health,
      clock,
      onAttempt: (record) => logAttempt(log, generationId, record),
    });
    const { endpoint } = begun;
    voice = begun.value;
    const { format, sampleRateHz, channels, ignoredParameters } = voice;
    yield { kind: "started", generationId, format, sampleRateHz, channels, endpoint, ignoredParameters };
    yield* restOfAudio(begun, generation);
    voice = undefined;
    deadline.finish();
    const inputCharacters = codePoints(request.input);
    recordSpeed(begun, inputCharacters, dependencies);
    yield { kind: "finished", inputCharacters };
  } catch (thrown) {
    throw DomainError.from(thrown).withGenerationId(generationId);
  } finally {
    deadline.end();
    voice?.rest.return?.().catch(() => undefined);
  }
}

/** One synthesis under way. */
interface Generation {
  readonly generationId: string;
  readonly dependencies: SynthesizeDependencies;
  readonly deadline: Deadline;
  /** The caller's. */
  readonly signal: AbortSignal;
  readonly log: Log;
}

type Begun = AttemptsResult<SpeechEndpoint, Voice>;

/** The first audio, which is in hand, and all that follows it. */
async function* restOfAudio(
  begun: Begun,
  generation: Generation,
): AsyncGenerator<SynthesisFrame, void, undefined> {
  const { first, rest } = begun.value;
  yield* audioFrames(first);
  try {
    for (;;) {
      const next = await generation.deadline.waitFor(rest.next());
      if (next.done) return;
      yield* audioFrames(next.value);
    }
  } catch (thrown) {
    const { deadline, signal, generationId, log, dependencies } = generation;
    const { health, clock } = dependencies;
    const { timedOut, upstreamSlow } = deadline;
    const { attempts } = begun;
    throw brokenOff({
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
}

function recordSpeed(
  { attempts, endpoint }: Begun,
  inputCharacters: number,
  { health, clock }: SynthesizeDependencies,
) {
  const winner = attempts.at(-1);
  if (winner === undefined) return;
  const seconds = (clock.monotonicMs() - winner.startedMonotonicMs) / 1000;
  health.recordThroughput(endpoint.id, inputCharacters / seconds);
}

/** An endpoint whose first audio is in hand. */
interface Voice {
  readonly format: AudioFormat;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly ignoredParameters: readonly string[];
  readonly first: Uint8Array;
  readonly rest: AsyncIterator<Uint8Array>;
}

async function beginSpeaking(
  endpoint: SpeechEndpoint,
  request: SpeechRequest,
  { providers, encoders }: SynthesizeDependencies,
  signal: AbortSignal,
): Promise<Voice> {
  const { adapter, connection } = providers.speech(endpoint.providerSlug);
  const { call, transcode, ignoredParameters } = planCall(endpoint, request);
  const answer = await adapter.synthesize(call, { signal, connection });
  const audio = transcode ? transcodePcmToMp3({ ...answer, encoders }) : answer.audio;
  const rest = audio[Symbol.asyncIterator]();
  const first = await rest.next();
  if (first.done) throw new ProviderError("bad_answer", "the answer has no audio");
  const { sampleRateHz, channels } = answer;
  return { format: request.format, sampleRateHz, channels, ignoredParameters, first: first.value, rest };
}

function* audioFrames(bytes: Uint8Array): Generator<SynthesisFrame> {
  for (let start = 0; start < bytes.length; start += maxFrameBytes) {
    yield { kind: "audio", bytes: bytes.subarray(start, start + maxFrameBytes) };
  }
}
