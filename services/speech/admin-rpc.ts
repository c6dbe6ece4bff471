import type { ServiceImpl } from "@connectrpc/connect";
import type { SpeechAdminService } from "../../gen/media/speech/v1/speech_admin_service_pb.ts";
import { operatorOf } from "../../lib/identity/caller.ts";
import { requestLogKey } from "../../lib/rpc/request-context.ts";
import type { RecordProviderTest } from "../../lib/service/open-generation.ts";
import type { SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { ProviderTests, type TestedMedium } from "../../providers/routing/provider-test.ts";
import { mostCostOf } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { beginSpeaking, type SynthesizeDependencies } from "./synthesize.ts";

/** The handlers of SpeechAdminService. */
export function createAdminHandlers(
  dependencies: SynthesizeDependencies,
  record: RecordProviderTest,
): ServiceImpl<typeof SpeechAdminService> {
  const { catalog, providers, clock, limits } = dependencies;
  const operatorKeys = (slug: string) => providers.operatorKeys(slug);
  // So short a text is spoken at once where the first of it comes in time.
  const tests = new ProviderTests({ operatorKeys, record, clock, timeoutMs: limits.firstByteTimeoutMs });
  return {
    async testSpeechProvider({ providerSlug, operatorKey, voice }, context) {
      const asked = { operator: operatorOf(context), providerSlug, operatorKey };
      const request = (endpoint: SpeechEndpoint) => shortestRequest(endpoint, voice);
      const medium: TestedMedium<SpeechEndpoint> = {
        name: "speech",
        endpoints: catalog.speechModels().flatMap(({ endpoints }) => endpoints),
        canTry: (endpoint) => endpoint.speech.voiceOptional === true || request(endpoint).voice !== undefined,
        mostCost: (endpoint) => mostCostOf(endpoint, request(endpoint)),
        async *outputs(endpoint, bounds) {
          const { first, rest } = await beginSpeaking(endpoint, request(endpoint), dependencies, bounds);
          yield first;
          yield* { [Symbol.asyncIterator]: () => rest };
        },
      };
      return { report: await tests.run(asked, medium, context.signal, context.values.get(requestLogKey)) };
    },
  };
}

function shortestRequest({ model, speech }: SpeechEndpoint, voice: string): SpeechRequest {
  const known = speech.defaultVoice ?? speech.voices[0]?.id;
  return {
    input: "Hi",
    model,
    voice: voice === "" ? known : voice,
    format: speech.formats.includes("mp3") ? "mp3" : "pcm",
    speed: undefined,
    preferences: undefined,
  };
}
