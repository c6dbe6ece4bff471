import type { OpenAiUpstream } from "../../test/upstreams/openai/openai.ts";
import type { SpeechBehaviour } from "../../test/upstreams/openai/openai-behaviour.ts";
import { describeSpeechProvider, type SpeechFailure } from "../provider.suite.ts";
import {
  createSpeechSetup,
  speechFailure as failure,
  type SpeechVendor,
  type SpeechVendorSetup,
  secretWords,
  wireFailures,
  wrongKey,
} from "../speech-upstream.suite.ts";

/** A provider of this dialect, the stand-in for its upstream, and one of its calls that the stand-in takes. */
export type CompatibleSpeech = SpeechVendor<OpenAiUpstream>;

/** What the suite knows of a provider of this dialect. */
export type CompatibleSpeechSetup = SpeechVendorSetup<OpenAiUpstream>;

/** The acceptance suite of a provider that speaks by this dialect, with the failures that the dialect distinguishes. */
export function describeCompatibleSpeech(
  name: string,
  speech: CompatibleSpeech,
  failures: readonly SpeechFailure<CompatibleSpeechSetup>[] = [],
): void {
  describeSpeechProvider(name, () => createSpeechSetup(speech), [...usualFailures, ...failures]);
}

function refused(status: number, code?: string): SpeechBehaviour {
  return { kind: "error", status, message: secretWords, ...(code !== undefined && { code }) };
}

const usualFailures: readonly SpeechFailure<CompatibleSpeechSetup>[] = [
  ...wireFailures,
  wrongKey,
  failure("400", "invalid_request", refused(400)),
  failure("400 moderation_blocked", "content_policy", refused(400, "moderation_blocked")),
  failure("403", "credentials", refused(403)),
  failure("429", "overloaded", refused(429)),
  failure("429 insufficient_quota", "credentials", refused(429, "insufficient_quota")),
  failure("500", "upstream", refused(500)),
  failure("503", "overloaded", refused(503)),
  failure("504", "timeout", refused(504)),
  {
    name: "an unknown model",
    kind: "invalid_request",
    status: 404,
    provoke: ({ call }) => ({ call: { ...call, upstreamModel: "no-such-model" } }),
  },
];
