import Type, { type Static } from "typebox";
import type { GenerationFinished } from "../../gen/media/image/v1/image_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";

/** What a generation used and cost, as the REST interface shows it. */
export const imageUsageSchema = Type.Object({
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
