import type { Client } from "@connectrpc/connect";
import Type, { type Static } from "typebox";
import type { GetCreditsResponse } from "../../gen/media/account/v1/credit_pb.ts";
import type { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { apiPath } from "../docs/openapi.ts";
import { jsonAnswer, type RouteDocument } from "../docs/route-document.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";

const creditsAnswerSchema = Type.Object({
  data: Type.Object({
    total_credits: Type.Number({ minimum: 0, description: "All that was ever granted, USD." }),
    total_usage: Type.Number({ minimum: 0, description: "All that was ever charged, USD." }),
    held: Type.Number({
      minimum: 0,
      description: "What requests under way have on hold, USD: total_credits - total_usage - held is free.",
    }),
  }),
});

/** An account's credits as they are shown. */
function toCreditsAnswer(credits: GetCreditsResponse): Static<typeof creditsAnswerSchema> {
  return {
    data: {
      total_credits: usdNumber(credits.totalCreditsNanoUsd),
      total_usage: usdNumber(credits.totalUsageNanoUsd),
      held: usdNumber(credits.heldNanoUsd),
    },
  };
}

interface CreditsDependencies {
  credits: Client<typeof CreditService>;
}

const document: RouteDocument = {
  id: "getCredits",
  tag: "Credits",
  summary: "Credits of the account",
  description:
    "What the account was granted, what it has spent, and what requests under way have on hold beyond that. Management keys only.",
  answer: jsonAnswer("The credits.", "Credits", creditsAnswerSchema, {
    data: { total_credits: 25, total_usage: 1.25, held: 0.05 },
  }),
};

/** GET /api/v1/credits: what the account was granted and has spent. */
export function creditsRoute({ credits }: CreditsDependencies): Route {
  return serviceRoute({
    method: "GET",
    path: `${apiPath}/credits`,
    document,
    request: () => ({}),
    call: credits.getCredits,
    answer: toCreditsAnswer,
  });
}
