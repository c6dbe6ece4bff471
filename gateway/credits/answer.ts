import Type, { type Static } from "typebox";
import type { GetCreditsResponse } from "../../gen/media/account/v1/credit_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";

/** The answer of GET /credits. */
export const creditsAnswerSchema = Type.Object({
  data: Type.Object({
    total_credits: Type.Number({ minimum: 0, description: "All that was ever granted, USD." }),
    total_usage: Type.Number({ minimum: 0, description: "All that was ever charged, USD." }),
  }),
});

/** An account's credits as they are shown. */
export function toCreditsAnswer(credits: GetCreditsResponse): Static<typeof creditsAnswerSchema> {
  return {
    data: {
      total_credits: usdNumber(credits.totalCreditsNanoUsd),
      total_usage: usdNumber(credits.totalUsageNanoUsd),
    },
  };
}
