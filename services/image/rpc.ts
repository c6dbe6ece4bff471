import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { principalOf } from "../../lib/identity/caller.ts";
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
  return (router) => router.service(ImageService, imageHandlers(dependencies), { interceptors, ...limits });
}

function imageHandlers(dependencies: GenerateDependencies): ServiceImpl<typeof ImageService> {
  return {
    async *generate(request, context) {
      principalOf(context);
      const log = context.values.get(requestLogKey);
      const prompt = fromProtoGenerateRequest(request);
      for await (const frame of generate(prompt, dependencies, context.signal, log))
        yield toProtoFrame(frame);
    },
    listImageModels() {
      return { models: listImageModels(dependencies.catalog) };
    },
  };
}
