import Type, { type Static } from "typebox";
import type { GenerationFinished } from "../../../gen/media/image/v1/image_pb.ts";
import { usdNumber } from "../../../lib/money/nano-usd.ts";
import { errorSchema } from "../../docs/error-schema.ts";
import { stringEnum } from "../../schema/field-schemas.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description });
const details = Type.Object({
  text_tokens: count("Those that stand for text."),
  image_tokens: count("Those that stand for images."),
});

/** What a generation used, by OpenAI's names; what it cost besides. */
const imageTokenUsageSchema = Type.Object({
  input_tokens: count("Input tokens the provider reported, else 0."),
  output_tokens: count("Output tokens the provider reported, else 0."),
  total_tokens: count("Both together."),
  input_tokens_details: details,
  output_tokens_details: details,
  cost: Type.Number({ minimum: 0, description: "What the account is charged, USD." }),
  is_byok: Type.Boolean({ description: "Whether the account's own provider key served." }),
});

/** The usage of a whole generation. */
export function toImageTokenUsage(finished: GenerationFinished): Static<typeof imageTokenUsageSchema> {
  const input = Number(finished.promptTokens);
  const output = Number(finished.completionTokens);
  return {
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    input_tokens_details: toDetails(input, Number(finished.promptImageTokens)),
    output_tokens_details: toDetails(output, Number(finished.completionImageTokens)),
    cost: usdNumber(finished.costNanoUsd),
    is_byok: finished.byok,
  };
}

function toDetails(all: number, images: number) {
  return { text_tokens: Math.max(0, all - images), image_tokens: images };
}

const base64 = Type.String({ contentEncoding: "base64", minLength: 1, description: "The encoded image." });
const format = stringEnum(["png", "jpeg", "webp", "svg"]);
const size = Type.String({ description: "`<width>x<height>`, or `auto` while it is not known." });

/** The buffered answer of OpenAI's image operations. */
export const imageGenerationsAnswerSchema = Type.Object({
  created: Type.Integer({ description: "Unix seconds." }),
  data: Type.Array(Type.Object({ b64_json: base64 }), {
    minItems: 1,
    description: "As many as the provider made, at most n.",
  }),
  output_format: format,
  size: Type.Optional(Type.String({ description: "`<width>x<height>` of the first image." })),
  quality: Type.Optional(stringEnum(["low", "medium", "high"], { description: "Where it was asked for." })),
  background: Type.Optional(
    stringEnum(["transparent", "opaque"], { description: "Where it was asked for." }),
  ),
  usage: imageTokenUsageSchema,
});

const eventFields = {
  created_at: Type.Integer({ description: "Unix seconds." }),
  output_format: format,
  quality: stringEnum(["low", "medium", "high", "auto"]),
  background: stringEnum(["transparent", "opaque", "auto"]),
  size,
  b64_json: base64,
};

/** The data of one server-sent event of OpenAI's image operations. */
export const imageGenerationsEventSchema = Type.Union(
  [
    Type.Object(
      {
        type: stringEnum(["image_generation.partial_image", "image_edit.partial_image"]),
        partial_image_index: Type.Integer({ minimum: 0 }),
        ...eventFields,
      },
      { description: "A preview." },
    ),
    Type.Object(
      {
        type: stringEnum(["image_generation.completed", "image_edit.completed"]),
        ...eventFields,
        usage: Type.Optional(imageTokenUsageSchema),
      },
      { description: "One for each image; the n-th carries the usage of all." },
    ),
    Type.Object(
      { type: stringEnum(["error"]), error: errorSchema },
      { description: "The generation failed after the stream had begun." },
    ),
  ],
  {
    description:
      "Each event holds one of these as JSON in its `data:` line, and its type in its `event:` line.",
  },
);
