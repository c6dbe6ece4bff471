import type { Client } from "@connectrpc/connect";
import type { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { type BodyLimits, readJsonBody } from "../body/request-body.ts";
import type { RouteDocument } from "../docs/route-document.ts";
import type { Route } from "../http/route.ts";
import { streamAudio } from "./answer.ts";
import { speechBodySchema, toSynthesizeRequest } from "./body.ts";

interface AudioSpeechDependencies {
  speech: Client<typeof SpeechService>;
  bodyLimits: BodyLimits;
  clientStallTimeoutMs: number;
  speechTimeoutMs: number;
  clock: Clock;
}

const document: RouteDocument = {
  id: "createSpeech",
  tag: "Speech",
  summary: "Text to speech",
  description:
    "Answers with the raw audio as it is made; PCM is signed 16-bit little-endian. A failure after the first byte cuts the connection.",
  body: {
    name: "SpeechRequest",
    schema: speechBodySchema,
    examples: ({ speech: { model, voice } }) => ({
      least: { model, input: "Good morning." },
      more: { model, input: "Good morning.", voice, response_format: "pcm", speed: 1.25 },
    }),
  },
  answer: {
    description: "The audio.",
    headers: ["X-Generation-Id", "X-Audio-Sample-Rate", "X-Audio-Channels", "X-Ignored-Parameters"],
    content: { "audio/mpeg": {}, "audio/pcm": {} },
  },
};

/** POST /api/v1/audio/speech: text in, raw audio out. */
export function audioSpeechRoute(dependencies: AudioSpeechDependencies): Route {
  const { speech, clock } = dependencies;
  return {
    method: "POST",
    path: "/api/v1/audio/speech",
    operation: "speech",
    access: "speech",
    document,
    async handle(exchange) {
      const request = toSynthesizeRequest(await readJsonBody(exchange, dependencies.bodyLimits));
      const deadlineMs = exchange.startedMs + dependencies.speechTimeoutMs;
      const timeoutMs = Math.max(1, Math.ceil(deadlineMs - clock.monotonicMs()));
      const contextValues = exchange.callContext();
      await streamAudio(
        exchange,
        (signal) => speech.synthesize(request, { signal, timeoutMs, contextValues }),
        {
          stallTimeoutMs: dependencies.clientStallTimeoutMs,
          deadlineMs,
          clock,
        },
      );
    },
  };
}
