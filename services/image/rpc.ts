import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { GenerateResponseSchema } from "../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { attributionOf } from "../../lib/generation/attribution.ts";
import { closeOnAbort } from "../../lib/generation/close-on-abort.ts";
import { bytesSender } from "../../lib/runtime/outgoing-bytes.ts";
import { requestLogKey } from "../../lib/runtime/request-context.ts";
import type { MessageLimits, RegisterRoutes } from "../../lib/runtime/rpc-handler.ts";
import { fromProtoGenerateRequest } from "./convert.ts";
import { listImageModels } from "./discover.ts";
import { type GenerateDependencies, generate } from "./generate.ts";
import { toProtoFrame } from "./to-proto-frame.ts";

/**
 * Registers ImageService with message limits of its own, whatever else is on the port; `interceptors` establish who
 * calls and translate errors.
 */
export function imageRoutes(
  dependencies: GenerateDependencies,
  limits: MessageLimits,
  interceptors: Interceptor[],
): RegisterRoutes {
  return (router) =>
    router.service(ImageService, imageHandlers(dependencies, limits), { interceptors, ...limits });
}

function imageHandlers(
  dependencies: GenerateDependencies,
  { writeMaxBytes }: MessageLimits,
): ServiceImpl<typeof ImageService> {
  const { imageData } = GenerateResponseSchema.field;
  const offered = dependencies.catalog.offeredBy((slug) => dependencies.providers.isOn(slug));
  return {
    async *generate(request, context) {
      const attribution = attributionOf(request, context);
      const log = context.values.get(requestLogKey);
      const prompt = fromProtoGenerateRequest(request);
      const frames = generate(prompt, attribution, dependencies, context.signal, log);
      const sendImageData = bytesSender(context, imageData, writeMaxBytes);
      for await (const frame of closeOnAbort(frames, context.signal))
        yield toProtoFrame(frame, sendImageData);
    },
    listImageModels() {
      return { models: listImageModels(offered) };
    },
  };
}
