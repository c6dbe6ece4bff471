import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { apiPath } from "../docs/openapi.ts";
import { jsonAnswer, type RouteDocument } from "../docs/route-document.ts";
import { readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import { toVoiceList, voiceListSchema } from "./voice-list.ts";

const voice = {
  id: "a-voice",
  name: "A voice",
  model: "author/model",
  language: "en-US",
  gender: "female",
  preview_url: null,
  aliases: ["alloy"],
  is_default: true,
};

const document: RouteDocument = {
  id: "listVoices",
  tag: "Speech",
  summary: "Voices of speech models",
  description: "Lists what `voice` may be. A model that takes any string has none to list.",
  parameters: [
    {
      name: "model",
      in: "query",
      description: "Only this model's; those of all models without it.",
      schema: Type.String({ minLength: 1 }),
    },
  ],
  answer: jsonAnswer("The voices.", "VoiceList", voiceListSchema, {
    object: "list",
    voices: [voice],
    data: [voice],
  }),
  errors: [404],
};

/** GET /api/v1/audio/voices. */
export function voicesRoute({ speech }: { speech: Client<typeof SpeechService> }): Route {
  return serviceRoute({
    method: "GET",
    path: `${apiPath}/audio/voices`,
    access: "any",
    document,
    request: (exchange) => readQuery(exchange, (query) => query.text("model")),
    call: async (wanted, options) => ({ wanted, ...(await speech.listSpeechModels({}, options)) }),
    answer({ wanted, models }) {
      const listed = wanted === undefined ? models : models.filter(({ id }) => id === wanted);
      if (wanted !== undefined && listed.length === 0) {
        throw new DomainError(ErrorReason.MODEL_UNKNOWN, "no such speech model");
      }
      return toVoiceList(listed);
    },
  });
}
