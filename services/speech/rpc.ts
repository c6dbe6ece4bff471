import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { principalOf } from "../../lib/identity/caller.ts";
import { requestLogKey } from "../../lib/runtime/request-context.ts";
import type { RegisterRoutes } from "../../lib/runtime/rpc-handler.ts";
import { fromProtoSynthesizeRequest, toProtoFrame } from "./convert.ts";
import { listSpeechModels } from "./discover.ts";
import { type SynthesizeDependencies, synthesize } from "./synthesize.ts";

/** Registers SpeechService; `interceptors` establish who calls and translate errors. */
export function speechRoutes(
  dependencies: SynthesizeDependencies,
  interceptors: Interceptor[],
): RegisterRoutes {
  return (router) => router.service(SpeechService, speechHandlers(dependencies), { interceptors });
}

function speechHandlers(dependencies: SynthesizeDependencies): ServiceImpl<typeof SpeechService> {
  return {
    async *synthesize(request, context) {
      principalOf(context);
      const log = context.values.get(requestLogKey);
      const speech = fromProtoSynthesizeRequest(request);
      for await (const frame of synthesize(speech, dependencies, context.signal, log))
        yield toProtoFrame(frame);
    },
    listSpeechModels() {
      return { models: listSpeechModels(dependencies.catalog) };
    },
  };
}
