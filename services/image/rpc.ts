import type { HandlerContext, Interceptor, ServiceImpl } from "@connectrpc/connect";
import { GenerateResponseSchema } from "../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { answerGraceMs } from "../../lib/generation/answer-grace.ts";
import { attributionOf } from "../../lib/generation/attribution.ts";
import { callerKey } from "../../lib/identity/caller.ts";
import { callLifeOf } from "../../lib/rpc/call-life.ts";
import { bytesSender } from "../../lib/rpc/port/outgoing-bytes.ts";
import { requestLogKey } from "../../lib/rpc/request-context.ts";
import type { MessageLimits, RegisterRoutes } from "../../lib/rpc/rpc-handler.ts";
import { fromProtoGenerateRequest } from "./convert.ts";
import { listImageModels } from "./discover.ts";
import { type GenerateDependencies, type GenerationLimits, generate } from "./generate.ts";
import type { ReferenceHolder } from "./references.ts";
import { toProtoFrame } from "./to-proto-frame.ts";

type ImageWork = Pick<GenerateDependencies, "room" | "loadReferences">;

/** Of the process; `imageWorkOf` gives a call its share of the room for images. */
export interface ImageRouteDependencies extends Omit<GenerateDependencies, keyof ImageWork> {
  imageWorkOf(holder: ReferenceHolder): ImageWork;
}

/**
 * Registers ImageService with message limits of its own, whatever else is on the port; `interceptors` establish who
 * calls and translate errors.
 */
export function imageRoutes(
  dependencies: ImageRouteDependencies,
  limits: MessageLimits,
  interceptors: Interceptor[],
): RegisterRoutes {
  return (router) =>
    router.service(ImageService, imageHandlers(dependencies, limits), { interceptors, ...limits });
}

function imageHandlers(
  dependencies: ImageRouteDependencies,
  { writeMaxBytes }: MessageLimits,
): ServiceImpl<typeof ImageService> {
  const { imageData } = GenerateResponseSchema.field;
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
      const sendImageData = bytesSender(context, imageData, writeMaxBytes);
      callLifeOf(context.values).keepUntil(frames.ended);
      for await (const frame of frames) yield toProtoFrame(frame, sendImageData);
    },
    listImageModels() {
      return { models: listImageModels(offered) };
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
