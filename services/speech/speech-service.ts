import type { ServiceImpl } from "@connectrpc/connect";
import { SpeechAdminService } from "../../gen/media/speech/v1/speech_admin_service_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { attributionOf } from "../../lib/generation/generation-event.ts";
import { principalIfAny } from "../../lib/identity/caller.ts";
import { createLimitInterceptor } from "../../lib/rate-limit/limit-interceptor.ts";
import { callLifeOf } from "../../lib/rpc/call-life.ts";
import { requestLogKey } from "../../lib/rpc/request-context.ts";
import { systemClock } from "../../lib/runtime/clock.ts";
import { callInterceptors } from "../../lib/service/call-interceptors.ts";
import type { GeneratorOptions } from "../../lib/service/open-generation.ts";
import type { Service } from "../../lib/service/run-service.ts";
import type { OpenProviders } from "../../providers/registry.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { providerStates } from "../../providers/routing/provider-states.ts";
import { watchBreakers } from "../../providers/routing/upstream-metrics.ts";
import { createAdminHandlers } from "./admin-rpc.ts";
import { fromProtoSynthesizeRequest, toProtoFrames } from "./convert.ts";
import { listSpeechModels } from "./discover.ts";
import { type SynthesisLimits, type SynthesizeDependencies, synthesize } from "./synthesize.ts";
import { Mp3Encoders } from "./transcode.ts";

/** Nothing of it is closed by the service. */
export interface SpeechServiceOptions extends GeneratorOptions, OpenProviders {
  readonly limits: SynthesisLimits;
  /** From 0 to below 1; Math.random unless given. */
  random?(): number;
}

/** The speech service over the providers of this process. */
export function createSpeechService(options: SpeechServiceOptions): Service {
  const { providers, limits, paid, clock = systemClock, random = Math.random } = options;
  const { catalog } = options;
  const offered = catalog.offeredBy((slug) => providers.isOn(slug));
  const counted = createLimitInterceptor({
    limiter: options.limiter,
    shedder: options.shedder,
    methods: [SpeechService.method.synthesize],
  });
  const health = new EndpointHealth({ clock });
  if (options.metrics !== undefined)
    watchBreakers(options.metrics, offered.speechModels(), { health, providers });
  const encoders = new Mp3Encoders();
  const dependencies = { catalog, providers, health, random, limits, encoders, clock, paid };
  const interceptors = [...callInterceptors({ ...options, audience: "speech", clock }), counted];
  return {
    services: [SpeechService, SpeechAdminService],
    routes(router) {
      const admin = createAdminHandlers(dependencies, options.recordProviderTest);
      router.service(SpeechService, speechHandlers(dependencies), { interceptors });
      router.service(SpeechAdminService, admin, { interceptors });
    },
    async readiness() {
      return offered.speechModels().length > 0 ? [] : ["no speech model: every provider is off"];
    },
  };
}

function speechHandlers(dependencies: SynthesizeDependencies): ServiceImpl<typeof SpeechService> {
  const offered = dependencies.catalog.offeredBy((slug) => dependencies.providers.isOn(slug));
  return {
    synthesize(request, context) {
      const attribution = attributionOf(request, context);
      const log = context.values.get(requestLogKey);
      const speech = fromProtoSynthesizeRequest(request);
      const frames = synthesize(speech, attribution, dependencies, context.signal, log);
      callLifeOf(context.values).keepUntil(frames.ended);
      return toProtoFrames(frames);
    },
    listSpeechModels() {
      return { models: listSpeechModels(offered, dependencies) };
    },
    async listSpeechProviders(_request, context) {
      const { catalog, paid } = dependencies;
      const principal = principalIfAny(context);
      const ownKeys = async (slugs: readonly string[]) =>
        principal === undefined ? new Map() : paid.ownKeys(principal.accountId, slugs);
      return {
        providers: await providerStates(catalog.speechModels(), {
          ...dependencies,
          unpriced: catalog.unpriced,
          ownKeys,
        }),
      };
    },
  };
}
