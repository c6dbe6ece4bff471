import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import type { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { apiPath } from "../docs/openapi.ts";
import { jsonAnswer, type RouteDocument } from "../docs/route-document.ts";
import { type QueryReader, readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import { activityListSchema, toActivityList } from "./list.ts";

interface ActivityDependencies {
  usage: Client<typeof UsageService>;
}

const document: RouteDocument = {
  id: "listActivity",
  tag: "Usage",
  summary: "Activity by day and endpoint",
  description:
    "What the account did, grouped by UTC day and endpoint. Days sum up to the whole window: today and the 30 days before it. A request shows within 2 s of its end. Management keys only.",
  parameters: [
    {
      name: "date",
      in: "query",
      description:
        "One UTC day of the window, `YYYY-MM-DD`: today or one of the 30 days before it, any other is refused; the whole window without it.",
      schema: Type.String({ format: "date" }),
    },
    {
      name: "api_key_hash",
      in: "query",
      description: "Only what this key did: its SHA-256. An unknown one gives no items.",
      schema: Type.String({ pattern: "^[0-9a-fA-F]{64}$" }),
    },
    {
      name: "user_id",
      in: "query",
      description: "Only what this member did; for organizations alone.",
      schema: Type.String({ format: "uuid" }),
    },
  ],
  answer: jsonAnswer("The activity.", "ActivityList", activityListSchema, {
    data: [
      {
        date: "2030-01-31",
        endpoint_id: "0f9d1b6e-3a52-4c7b-9c52-5a6f0d6f7a10",
        model: "author/model",
        model_permaslug: "author/model-2030-01-01",
        provider_name: "Acme",
        requests: 12,
        prompt_tokens: 0,
        completion_tokens: 0,
        reasoning_tokens: 0,
        cached_tokens: 0,
        usage: 0.0153,
        byok_usage_inference: 0,
      },
    ],
  }),
};

/** GET /api/v1/activity: what the account did, by day and endpoint. */
export function activityRoute({ usage }: ActivityDependencies): Route {
  return serviceRoute({
    method: "GET",
    path: `${apiPath}/activity`,
    operation: "activity",
    document,
    request: (exchange) => readQuery(exchange, askedActivity),
    call: usage.listActivity,
    wireNames: { member_id: "user_id" },
    answer: ({ items }) => toActivityList(items),
  });
}

function askedActivity(query: QueryReader) {
  return {
    date: query.matching("date", /^\d{4}-\d{2}-\d{2}$/, "must be a day such as 2030-01-31") ?? "",
    apiKeyHash: query.keyHash("api_key_hash") ?? "",
    memberId: query.text("user_id") ?? "",
  };
}
