import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { attributionOf } from "../../lib/generation/attribution.ts";
import { callLifeOf } from "../../lib/rpc/call-life.ts";
import { requestLogKey } from "../../lib/rpc/request-context.ts";
import type { RegisterRoutes } from "../../lib/rpc/rpc-handler.ts";
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
