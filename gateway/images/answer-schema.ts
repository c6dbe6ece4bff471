import Type, { type Static } from "typebox";
import type { GenerationFinished } from "../../gen/media/image/v1/image_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { errorSchema } from "../docs/error-schema.ts";
import { stringEnum } from "../schema/field-schemas.ts";

/** What a generation used and cost. */
const imageUsageSchema = Type.Object({
  prompt_tokens: Type.Integer({ minimum: 0, description: "Input tokens the provider reported, else 0." }),
  completion_tokens: Type.Integer({
    minimum: 0,
    description: "Output tokens the provider reported, else 0.",
  }),
  total_tokens: Type.Integer({ minimum: 0 }),
  cost: Type.Number({ minimum: 0, description: "What the account is charged, USD." }),
  is_byok: Type.Boolean({ description: "Whether the account's own provider key served." }),
});

/** The usage of a whole generation. */
export function toImageUsage(finished: GenerationFinished): Static<typeof imageUsageSchema> {
  const { promptTokens, completionTokens, costNanoUsd, byok } = finished;
  return {
    prompt_tokens: Number(promptTokens),
    completion_tokens: Number(completionTokens),
    total_tokens: Number(promptTokens + completionTokens),
    cost: usdNumber(costNanoUsd),
    is_byok: byok,
  };
}

const base64 = Type.String({
  contentEncoding: "base64",
  minLength: 1,
  description: "The encoded image; for svg its UTF-8 markup.",
});
const created = Type.Integer({ description: "Unix seconds." });
const mediaType = Type.String({ description: "What the bytes are, such as `image/png`." });

/** The buffered answer of POST /images. */
export const imagesAnswerSchema = Type.Object({
  created,
  data: Type.Array(Type.Object({ b64_json: base64, media_type: mediaType }), {
    minItems: 1,
    description: "As many as the provider made, at most n.",
  }),
  usage: Type.Optional(imageUsageSchema),
});

/** The data of one server-sent event of POST /images. */
export const imageEventSchema = Type.Union(
  [
    Type.Object(
      {
        type: stringEnum(["image_generation.partial_image"]),
        b64_json: base64,
        partial_image_index: Type.Integer({ minimum: 0 }),
      },
      { description: "A preview." },
    ),
    Type.Object(
      {
        type: stringEnum(["image_generation.text_chunk"]),
        phase: stringEnum(["content", "reasoning", "draft"]),
        text: Type.String(),
      },
      { description: "Text of a model that writes markup." },
    ),
    Type.Object(
      {
        type: stringEnum(["image_generation.completed"]),
        b64_json: base64,
        created,
        media_type: mediaType,
        usage: Type.Optional(imageUsageSchema),
      },
      { description: "One for each image; the n-th carries the usage of all." },
    ),
    Type.Object(
      { type: stringEnum(["error"]), error: errorSchema },
      { description: "The generation failed after the stream had begun." },
    ),
  ],
  { description: "Each `data:` line holds one of these as JSON; the last one is `data: [DONE]`." },
);
