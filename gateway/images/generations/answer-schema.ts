import Type from "typebox";
import { errorSchema } from "../../docs/error-schema.ts";
import { stringEnum } from "../../schema/string-enum.ts";
import { imageTokenUsageSchema } from "./token-usage.ts";

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
