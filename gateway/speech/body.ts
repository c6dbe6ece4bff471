import { create } from "@bufbuild/protobuf";
import Type from "typebox";
import {
  AudioFormat,
  type SynthesizeRequest,
  SynthesizeRequestSchema,
} from "../../gen/media/speech/v1/speech_pb.ts";
import { maxInstructionsCharacters, speedRange } from "../../lib/generation/request-limits.ts";
import {
  checkFreeFields,
  checkText,
  generationFields,
  maxNameLength,
  maxTextBytes,
  toProtoGeneration,
  withoutFieldNulls,
} from "../body/generation-fields.ts";
import { bodyRules, compileCheck, type JsonObject } from "../body/json-body.ts";
import { stringEnum } from "../schema/field-schemas.ts";

/** The body of POST /audio/speech. Unknown fields are ignored; null counts as absent. */
export const speechBodySchema = Type.Object(
  {
    input: Type.String({
      minLength: 1,
      maxLength: maxTextBytes,
      description: "The text to speak: at most 384 KiB in UTF-8, and what the model takes.",
    }),
    model: Type.String({ minLength: 1, description: "`<provider>/<model_name>`." }),
    voice: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: maxNameLength,
        description: "The model's name of a voice; required unless the model has a default voice.",
      }),
    ),
    response_format: Type.Optional(stringEnum(["mp3", "pcm"], { description: "Default mp3." })),
    speed: Type.Optional(
      Type.Number({
        ...speedRange,
        description: "A multiplier; ignored by models without speed control.",
      }),
    ),
    instructions: Type.Optional(
      Type.String({
        maxLength: maxInstructionsCharacters,
        description: "How to speak, in words; ignored by models that take none. Empty counts as absent.",
      }),
    ),
    ...generationFields,
  },
  bodyRules,
);

const check = compileCheck(speechBodySchema);

/**
 * The request that a body stands for. Throws invalid_body with its issues, and model_unknown for a name too long to
 * be in any catalogue.
 */
export function toSynthesizeRequest(body: JsonObject): SynthesizeRequest {
  const fields = check(withoutFieldNulls(body));
  checkFreeFields(fields.trace, fields.provider);
  checkText("input", fields.input);
  return create(SynthesizeRequestSchema, {
    ...toProtoGeneration(fields),
    input: fields.input,
    responseFormat: fields.response_format === "pcm" ? AudioFormat.PCM : AudioFormat.MP3,
    ...(fields.voice === undefined ? {} : { voice: fields.voice }),
    ...(fields.speed === undefined ? {} : { speed: fields.speed }),
    ...(fields.instructions === undefined || fields.instructions === ""
      ? {}
      : { instructions: fields.instructions }),
  });
}
