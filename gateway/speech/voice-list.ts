import Type, { type Static } from "typebox";
import type { SpeechModel, Voice } from "../../gen/media/speech/v1/speech_pb.ts";
import { stringEnum } from "../schema/field-schemas.ts";

const voiceSchema = Type.Object({
  id: Type.String({ description: "What to put in `voice`." }),
  name: Type.String({ description: "For people; the id where it has no other." }),
  model: Type.String({ description: "The model whose voice it is." }),
  language: Type.Union([Type.String(), Type.Null()], { description: "BCP 47; null: many, or not known." }),
  gender: Type.Union([stringEnum(["female", "male", "neutral"]), Type.Null()], {
    description: "Null: not known.",
  }),
  preview_url: Type.Union([Type.String({ format: "uri" }), Type.Null()]),
  aliases: Type.Array(Type.String(), { description: "Other names that `voice` takes for it." }),
  is_default: Type.Boolean({ description: "Whether it speaks where a request names none." }),
});

/**
 * The answer of GET /audio/voices. Servers of speech that speak OpenAI's dialect (Kokoro-FastAPI, Speaches, vLLM) list
 * under `voices`, with an id and a name that clients rely on; OpenAI's own lists have `object` and `data`. It is both.
 */
export const voiceListSchema = Type.Object({
  object: stringEnum(["list"]),
  voices: Type.Array(voiceSchema, { description: "By model, each model's in its own order." }),
  data: Type.Array(voiceSchema, { description: "The same." }),
});

type VoiceItem = Static<typeof voiceSchema>;

/** The voices of models; one that takes any string has none to list. */
export function toVoiceList(models: readonly SpeechModel[]): Static<typeof voiceListSchema> {
  const voices = models.flatMap((model) => model.voices.map((voice) => toItem(voice, model)));
  return { object: "list", voices, data: voices };
}

function toItem({ id, name, language, gender, previewUrl, aliases }: Voice, model: SpeechModel): VoiceItem {
  return {
    id,
    name: name === "" ? id : name,
    model: model.id,
    language: language === "" ? null : language,
    gender: gender === "female" || gender === "male" || gender === "neutral" ? gender : null,
    preview_url: previewUrl === "" ? null : previewUrl,
    aliases,
    is_default: id === model.defaultVoice,
  };
}
