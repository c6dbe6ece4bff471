import Type, { type Static } from "typebox";
import type { GenerationFinished } from "../../../gen/media/image/v1/image_pb.ts";
import { usdNumber } from "../../../lib/money/nano-usd.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description });
const details = Type.Object({
  text_tokens: count("Those that stand for text."),
  image_tokens: count("Those that stand for images."),
});

/** What a generation used, by OpenAI's names; what it cost besides. */
export const imageTokenUsageSchema = Type.Object({
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
