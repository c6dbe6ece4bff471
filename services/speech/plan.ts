import { codePoints } from "../../lib/generation/code-points.ts";
import type { Issue } from "../../lib/runtime/domain-error.ts";
import type { SpeechCapabilities, SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { mostSpeechCanCost } from "../../providers/catalog/endpoint-price.ts";
import type { AudioFormat, NativeAudioFormat, SpeechCall } from "../../providers/contract.ts";
import type { Candidate } from "../../providers/routing/candidate.ts";
import { passedThrough, textCharactersOf } from "../../providers/routing/passthrough-options.ts";
import { type CandidateSources, candidatesOfModel } from "../../providers/routing/router.ts";
import type { SpeechRequest } from "./speech-request.ts";

/** What one endpoint would be asked, and what of the request has no effect there. */
export interface PlannedCall {
  readonly call: SpeechCall;
  /** The endpoint gives samples and the client wants mp3. */
  readonly transcode: boolean;
  /** Parameters without effect, by their REST names. */
  readonly ignoredParameters: readonly string[];
}

/**
 * The endpoints that may serve a request, best first. Throws `model_unknown`, `no_endpoint_left` or
 * `unsupported_parameter`.
 */
export function candidatesFor(
  request: SpeechRequest,
  sources: CandidateSources,
  ownKeys: ReadonlyMap<string, string>,
): readonly Candidate<SpeechEndpoint>[] {
  return candidatesOfModel(
    {
      medium: "speech",
      offers: sources.catalog.speechModel(request.model)?.endpoints ?? [],
      preferences: request.preferences,
      unsupported: (endpoint) => unsupportedBy(endpoint, request),
      price: (endpoint) => mostCostOf(endpoint, request),
    },
    sources,
    ownKeys,
  );
}

/** The declared upper bound of what a request costs at an endpoint, nano-USD. */
export function mostCostOf(endpoint: SpeechEndpoint, request: SpeechRequest): bigint {
  const { options } = passedThrough(endpoint, request.preferences);
  const instructions = endpoint.speech.instructions ? (request.instructions ?? "") : "";
  return mostSpeechCanCost(endpoint.prices, {
    inputCharacters: codePoints(request.input),
    inputUtf8Bytes: Buffer.byteLength(request.input),
    otherCharacters: codePoints(instructions) + textCharactersOf(options),
  });
}

function unsupportedBy({ speech, ownKey }: Candidate<SpeechEndpoint>, request: SpeechRequest): Issue[] {
  const issues: Issue[] = [];
  const { voices, defaultVoice, voiceOptional, maxInputCharacters, formats } = speech;
  if (request.voice === undefined && defaultVoice === undefined && !voiceOptional) {
    issues.push({ path: "voice", message: "is required by this model" });
  }
  const voice = voiceOf(speech, request);
  const takesAny = voices.length === 0 || (speech.ownVoices === true && ownKey !== undefined);
  if (voice !== undefined && !takesAny && !voices.some(({ id }) => id === voice)) {
    issues.push({ path: "voice", message: "is not a voice of this model" });
  }
  if (codePoints(request.input) > maxInputCharacters) {
    issues.push({
      path: "input",
      message: `must be at most ${maxInputCharacters} characters for this model`,
    });
  }
  if (nativeFormat(formats, request.format) === undefined) {
    issues.push({ path: "response_format", message: "is not offered by this model" });
  }
  return issues;
}

/** The endpoint's own name of the voice that a request names; undefined where it names none. */
function voiceOf({ voiceAliases }: SpeechCapabilities, { voice }: SpeechRequest): string | undefined {
  return voice === undefined ? undefined : (voiceAliases?.get(voice) ?? voice);
}

/** What to ask an endpoint for: the format itself, or samples, raw or in a file, of which anything can be made. */
function nativeFormat(
  formats: readonly NativeAudioFormat[],
  wanted: AudioFormat,
): NativeAudioFormat | undefined {
  return [wanted, "pcm" as const, "wav" as const].find((format) => formats.includes(format));
}

/** What to ask an endpoint that `candidatesFor` returned. */
export function planCall(endpoint: SpeechEndpoint, request: SpeechRequest): PlannedCall {
  const { speech } = endpoint;
  const ignoredParameters: string[] = [];
  if (request.speed !== undefined && speech.speed === undefined) ignoredParameters.push("speed");
  if (request.instructions !== undefined && !speech.instructions) ignoredParameters.push("instructions");
  const { options, ignored } = passedThrough(endpoint, request.preferences);
  ignoredParameters.push(...ignored);
  // The parameter stands above the option of the same name.
  if (speech.instructions && request.instructions !== undefined && "instructions" in options)
    ignoredParameters.push(`provider.options.${endpoint.providerSlug}.instructions`);
  const format = nativeFormat(speech.formats, request.format) ?? request.format;
  const { speed } = speech;
  const call: SpeechCall = {
    upstreamModel: endpoint.upstreamModel,
    input: request.input,
    ...(speech.instructions && { instructions: request.instructions }),
    voice: voiceOf(speech, request) ?? speech.defaultVoice ?? "",
    format,
    sampleRateHz: speech.sampleRateHz,
    channels: speech.channels,
    speed: speed === undefined ? 1 : Math.min(Math.max(request.speed ?? 1, speed.min), speed.max),
    options,
    settings: endpoint.settings,
  };
  return { call, transcode: request.format === "mp3" && format !== "mp3", ignoredParameters };
}
