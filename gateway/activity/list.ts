import Type, { type Static } from "typebox";
import type { ActivityItem } from "../../gen/media/usage/v1/usage_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description });

const activityItemSchema = Type.Object({
  date: Type.String({ format: "date", description: "The UTC day on which the requests ended." }),
  endpoint_id: Type.String({ format: "uuid", description: "The endpoint that served, or was tried last." }),
  model: Type.String(),
  model_permaslug: Type.String({ description: "The dated name of the exact model." }),
  provider_name: Type.String(),
  requests: count("How many requests."),
  prompt_tokens: count("As the provider reported them, 0 where it reports none."),
  completion_tokens: count("As the provider reported them, 0 where it reports none."),
  reasoning_tokens: count("The part of completion_tokens that was spent on reasoning."),
  cached_tokens: count("The part of prompt_tokens that came from the provider's cache."),
  usage: Type.Number({
    minimum: 0,
    description: "What the account was charged, USD; for your own provider keys the fee.",
  }),
  byok_usage_inference: Type.Number({
    minimum: 0,
    description: "List price of what your own provider keys served, USD.",
  }),
});

/** The answer of GET /activity. */
export const activityListSchema = Type.Object({
  data: Type.Array(activityItemSchema, {
    description: "Ordered by date descending, usage descending, endpoint_id.",
  }),
});

/** The activity as it is shown, in the order of the service. */
export function toActivityList(items: readonly ActivityItem[]): Static<typeof activityListSchema> {
  return {
    data: items.map((item) => ({
      date: item.date,
      endpoint_id: item.endpointId,
      model: item.model,
      model_permaslug: item.modelPermaslug,
      provider_name: item.providerName,
      requests: Number(item.requests),
      prompt_tokens: Number(item.promptTokens),
      completion_tokens: Number(item.completionTokens),
      reasoning_tokens: Number(item.reasoningTokens),
      cached_tokens: Number(item.cachedTokens),
      usage: usdNumber(item.usageNanoUsd),
      byok_usage_inference: usdNumber(item.byokUsageInferenceNanoUsd),
    })),
  };
}
