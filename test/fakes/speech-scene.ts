import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import type { SpeechRequest } from "../../services/speech/speech-request.ts";
import type { SynthesisLimits, SynthesizeDependencies } from "../../services/speech/synthesize.ts";
import { Mp3Encoders } from "../../services/speech/transcode.ts";
import { FakePaidRequests } from "./fake-paid-requests.ts";
import {
  catalogOf,
  type EndpointChanges,
  type FakeSpeaker,
  fakeProviders,
  speechEndpoint,
} from "./fake-speech.ts";

const longMs = 60_000;

interface SceneChanges extends Partial<Omit<SynthesizeDependencies, "limits">> {
  readonly endpoint?: EndpointChanges | undefined;
  readonly limits?: Partial<SynthesisLimits> | undefined;
}

/** What somebody asks for who says as little as possible, with changes. */
export function speechRequest(changes: Partial<SpeechRequest> = {}): SpeechRequest {
  return {
    input: "Hello 😀",
    model: "acme/voice",
    voice: undefined,
    format: "pcm",
    speed: undefined,
    preferences: undefined,
    ...changes,
  };
}

/** A process of its own whose one model has an endpoint for each speaker, by provider; best first. */
export function speechDependencies(
  speakers: Readonly<Record<string, FakeSpeaker>>,
  { endpoint, limits, ...changes }: SceneChanges = {},
): SynthesizeDependencies {
  const endpoints = Object.keys(speakers).map((providerSlug) =>
    speechEndpoint({ providerSlug, ...endpoint }),
  );
  return {
    catalog: catalogOf(...endpoints),
    providers: { ...fakeProviders(speakers), takesOwnKeys: () => true },
    health: new EndpointHealth({ clock, breaker: { failuresToOpen: 1, openMs: longMs } }),
    limits: { firstByteTimeoutMs: longMs, idleTimeoutMs: longMs, timeoutMs: longMs, ...limits },
    encoders: new Mp3Encoders(),
    clock,
    random: () => 0.5,
    paid: new FakePaidRequests(),
    ...changes,
  };
}
