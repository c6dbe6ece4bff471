import type { HandlerContext, Interceptor, ServiceImpl } from "@connectrpc/connect";
import sharp from "sharp";
import { ImageAdminService } from "../../gen/media/image/v1/image_admin_service_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { answerGraceMs } from "../../lib/generation/answer-grace.ts";
import { attributionOf } from "../../lib/generation/generation-event.ts";
import type { GuardedFetch } from "../../lib/http/guarded-fetch.ts";
import { callerKey, principalIfAny } from "../../lib/identity/caller.ts";
import { ByteBudget } from "../../lib/limits/byte-budget.ts";
import { imageMessageLimits } from "../../lib/limits/image-messages.ts";
import { createLimitInterceptor } from "../../lib/rate-limit/limit-interceptor.ts";
import { callLifeOf } from "../../lib/rpc/call-life.ts";
import type { MessageLimits, RegisterRoutes } from "../../lib/rpc/registered-method.ts";
import { requestLogKey } from "../../lib/rpc/request-context.ts";
import { systemClock } from "../../lib/runtime/clock.ts";
import { callInterceptors } from "../../lib/service/call-interceptors.ts";
import type { GeneratorOptions, RecordProviderTest } from "../../lib/service/open-generation.ts";
import type { Service } from "../../lib/service/run-service.ts";
import type { OpenProviders } from "../../providers/registry.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { providerStates } from "../../providers/routing/provider-states.ts";
import { watchBreakers } from "../../providers/routing/upstream-metrics.ts";
import { createAdminHandlers } from "./admin-rpc.ts";
import { fromProtoGenerateRequest } from "./convert.ts";
import { listImageModels } from "./discover.ts";
import { type GenerateDependencies, type GenerationLimits, generate } from "./generate.ts";
import { DecodeBudget } from "./references/decode-budget.ts";
import { loadReferences, maxReferenceBytes, type ReferenceHolder } from "./references/references.ts";
import { toProtoFrame } from "./to-proto-frame.ts";

interface ImageServiceOptions extends GeneratorOptions, OpenProviders {
  readonly limits: GenerationLimits;
  /** Longest body that the gateway takes. */
  readonly maxBodyBytes: number;
  /** Most that the references of all requests hold at one time, bytes. */
  readonly maxInflightReferenceBytes: number;
  /** For references by URL alone, as it knows which addresses they may have. */
  readonly fetchReference: Pick<GuardedFetch, "fetch">;
  /** From 0 to below 1; Math.random unless given. */
  random?(): number;
}

/** The image service over the providers of this process. */
export function createImageService(options: ImageServiceOptions): Service {
  const { providers, limits, paid, clock = systemClock, random = Math.random } = options;
  const { catalog } = options;
  const offered = catalog.offeredBy((slug) => providers.isOn(slug));
  const counted = createLimitInterceptor({
    limiter: options.limiter,
    shedder: options.shedder,
    methods: [ImageService.method.generate],
  });
  const health = new EndpointHealth({ clock });
  if (options.metrics !== undefined)
    watchBreakers(options.metrics, offered.imageModels(), { health, providers });
  const dependencies: ImageRouteDependencies = {
    catalog,
    providers,
    health,
    random,
    limits,
    paid,
    clock,
    imageWorkOf: imageWorkWithin(options),
  };
  const messageLimits = imageMessageLimits(options.maxBodyBytes);
  return {
    services: [ImageService, ImageAdminService],
    routes: imageRoutes({ ...dependencies, record: options.recordProviderTest }, messageLimits, [
      ...callInterceptors({ ...options, audience: "image", clock }),
      counted,
    ]),
    async readiness() {
      return offered.imageModels().length > 0 ? [] : ["no image model: every provider is off"];
    },
  };
}

/** The room that the process has for images, to be divided between calls. */
function imageWorkWithin({
  fetchReference,
  maxInflightReferenceBytes: maxBytes,
}: ImageServiceOptions): ImageRouteDependencies["imageWorkOf"] {
  // One thread a job, since the budget counts jobs; and nothing is kept of them, since no image comes twice.
  sharp.concurrency(1);
  sharp.cache(false);
  const decoding = new DecodeBudget();
  const budget = new ByteBudget({ maxBytes, maxShareBytes: maxReferenceBytes });
  return (holder) => {
    const room = decoding.of(holder.key);
    return {
      room,
      loadReferences: (sources, signal) =>
        loadReferences(sources, holder, { fetch: fetchReference, budget, room }, signal),
    };
  };
}

type ImageWork = Pick<GenerateDependencies, "room" | "loadReferences">;

/** Of the process; `imageWorkOf` gives a call its share of the room for images. */
interface ImageRouteDependencies extends Omit<GenerateDependencies, keyof ImageWork> {
  imageWorkOf(holder: ReferenceHolder): ImageWork;
}

/**
 * Registers the services, ImageService with message limits of its own, whatever else is on the port; `interceptors`
 * establish who calls and translate errors.
 */
function imageRoutes(
  dependencies: ImageRouteDependencies & { readonly record: RecordProviderTest },
  limits: MessageLimits,
  interceptors: Interceptor[],
): RegisterRoutes {
  const roomOf = ({ values }: Pick<HandlerContext, "values">) =>
    dependencies.imageWorkOf({ key: "tests of providers", life: callLifeOf(values) }).room;
  return (router) => {
    router.service(ImageService, imageHandlers(dependencies), { interceptors, ...limits });
    router.service(ImageAdminService, createAdminHandlers({ ...dependencies, roomOf }), { interceptors });
  };
}

function imageHandlers(dependencies: ImageRouteDependencies): ServiceImpl<typeof ImageService> {
  const offered = dependencies.catalog.offeredBy((slug) => dependencies.providers.isOn(slug));
  return {
    async *generate(request, context) {
      const attribution = attributionOf(request, context);
      const log = context.values.get(requestLogKey);
      const prompt = fromProtoGenerateRequest(request);
      const limits = limitsFor(dependencies.limits, context);
      const { rateBucket } = attribution.principal;
      const work = dependencies.imageWorkOf({ key: rateBucket, life: callLifeOf(context.values) });
      const frames = generate(prompt, attribution, { ...dependencies, ...work, limits }, context.signal, log);
      callLifeOf(context.values).keepUntil(frames.ended);
      for await (const frame of frames) yield toProtoFrame(frame);
    },
    listImageModels() {
      return { models: listImageModels(offered, dependencies) };
    },
    async listImageProviders(_request, context) {
      const { catalog, paid } = dependencies;
      const principal = principalIfAny(context);
      const ownKeys = async (slugs: readonly string[]) =>
        principal === undefined ? new Map() : paid.ownKeys(principal.accountId, slugs);
      return {
        providers: await providerStates(catalog.imageModels(), {
          ...dependencies,
          unpriced: catalog.unpriced,
          ownKeys,
        }),
      };
    },
  };
}

/**
 * The deadline of a process of ours that calls is the request's: it is kept, and a little before, so that the process
 * hears what became of the attempts. That of any other caller is a way of leaving.
 */
function limitsFor(
  limits: GenerationLimits,
  context: Pick<HandlerContext, "values" | "timeoutMs">,
): GenerationLimits {
  const leftMs = context.timeoutMs();
  if (context.values.get(callerKey).kind !== "process" || leftMs === undefined) return limits;
  return { ...limits, timeoutMs: Math.max(1, Math.min(limits.timeoutMs, leftMs - answerGraceMs)) };
}
