import type { DescService } from "@bufbuild/protobuf";
import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { attributionOf } from "../../lib/generation/generation-event.ts";
import type { PaidRequests } from "../../lib/generation/paid-request.ts";
import type { KeyAuthenticator } from "../../lib/identity/authenticate.ts";
import type { TokenVerifier } from "../../lib/identity/service-token.ts";
import type { Strangers } from "../../lib/identity/stranger.ts";
import { createLimitInterceptor } from "../../lib/rate-limit/limit-interceptor.ts";
import type { RequestLimiter } from "../../lib/rate-limit/limiter.ts";
import type { LoadShedder } from "../../lib/rate-limit/load-shedder.ts";
import { callLifeOf } from "../../lib/rpc/call-life.ts";
import type { Readiness } from "../../lib/rpc/health.ts";
import { requestLogKey } from "../../lib/rpc/request-context.ts";
import type { RegisterRoutes } from "../../lib/rpc/rpc-handler.ts";
import { type Clock, systemClock } from "../../lib/runtime/clock.ts";
import type { Log } from "../../lib/runtime/log.ts";
import type { Tracer } from "../../lib/runtime/span.ts";
import { callInterceptors } from "../../lib/service/call-interceptors.ts";
import type { Metrics } from "../../lib/telemetry/metrics.ts";
import type { Catalog } from "../../providers/catalog/catalog.ts";
import type { ProviderSet } from "../../providers/registry.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { watchBreakers } from "../../providers/routing/upstream-metrics.ts";
import { fromProtoSynthesizeRequest, toProtoFrame } from "./convert.ts";
import { listSpeechModels } from "./discover.ts";
import { type SynthesisLimits, type SynthesizeDependencies, synthesize } from "./synthesize.ts";
import { Mp3Encoders } from "./transcode.ts";

/** Nothing of it is closed by the service. */
export interface SpeechServiceOptions {
  /** Every model of the catalogue; those whose providers are off are open to accounts with a key of their own. */
  readonly catalog: Catalog;
  readonly providers: ProviderSet;
  readonly limits: SynthesisLimits;
  readonly paid: PaidRequests;
  readonly limiter: RequestLimiter;
  /** The process's own; everything is carried unless given. */
  readonly shedder?: LoadShedder | undefined;
  readonly authenticateKey: KeyAuthenticator;
  readonly verifyToken: TokenVerifier;
  /** Counts who comes without a good key; nobody unless given. */
  readonly strangers?: Strangers | undefined;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
  readonly clock?: Clock;
  /** Records nothing unless given. */
  readonly tracer?: Tracer;
}

/** The speech service, to be put on a port or called in this process. */
export interface RunnableSpeechService {
  readonly services: readonly DescService[];
  readonly routes: RegisterRoutes;
  readonly readiness: Readiness;
}

/** The speech service over the providers of this process. */
export function createSpeechService(options: SpeechServiceOptions): RunnableSpeechService {
  const { providers, limits, paid, clock = systemClock } = options;
  const { catalog } = options;
  const offered = catalog.offeredBy((slug) => providers.isOn(slug));
  const counted = createLimitInterceptor({
    limiter: options.limiter,
    shedder: options.shedder,
    methods: [SpeechService.method.synthesize],
  });
  const health = new EndpointHealth({ clock });
  if (options.metrics !== undefined) watchBreakers(options.metrics, offered.speechModels(), health);
  return {
    services: [SpeechService],
    routes: speechRoutes({ catalog, providers, health, limits, encoders: new Mp3Encoders(), clock, paid }, [
      ...callInterceptors({ ...options, audience: "speech", clock }),
      counted,
    ]),
    async readiness() {
      return offered.speechModels().length > 0 ? [] : ["no speech model: every provider is off"];
    },
  };
}

/** Registers SpeechService; `interceptors` establish who calls and translate errors. */
function speechRoutes(dependencies: SynthesizeDependencies, interceptors: Interceptor[]): RegisterRoutes {
  return (router) => router.service(SpeechService, speechHandlers(dependencies), { interceptors });
}

function speechHandlers(dependencies: SynthesizeDependencies): ServiceImpl<typeof SpeechService> {
  const offered = dependencies.catalog.offeredBy((slug) => dependencies.providers.isOn(slug));
  return {
    async *synthesize(request, context) {
      const attribution = attributionOf(request, context);
      const log = context.values.get(requestLogKey);
      const speech = fromProtoSynthesizeRequest(request);
      const frames = synthesize(speech, attribution, dependencies, context.signal, log);
      callLifeOf(context.values).keepUntil(frames.ended);
      for await (const frame of frames) yield toProtoFrame(frame);
    },
    listSpeechModels() {
      return { models: listSpeechModels(offered) };
    },
  };
}
