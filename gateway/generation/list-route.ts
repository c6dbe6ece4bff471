import Type, { type Static } from "typebox";
import { type GenerationEvent, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { ListGenerationsResponse } from "../../gen/media/usage/v1/usage_pb.ts";
import { apiPath } from "../docs/openapi.ts";
import {
  cursorPageSchema,
  cursorParameters,
  jsonAnswer,
  type ParameterDocument,
  type RouteDocument,
} from "../docs/route-document.ts";
import { cursorPageNames, type QueryReader, readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import { nullableString, stringEnum } from "../schema/field-schemas.ts";
import { utcInstantSchema } from "../schema/utc-instant.ts";
import { generationSchema, type OutcomeWord, outcomes, toGenerationBody } from "./record.ts";
import { exampleEvent, type GenerationDependencies } from "./route.ts";

const listedGenerationSchema = Type.Object({
  ...generationSchema.properties,
  provider_slug: nullableString({ description: "The slug of provider_name." }),
  api_key_hash: Type.String({ description: "The key that asked: its SHA-256." }),
  api_key_name: nullableString({ description: "The name that the key had then." }),
  user_id: nullableString({ description: "The organization's member who made the key." }),
});

const generationListSchema = cursorPageSchema(listedGenerationSchema, "What ended last comes first.");

function toGenerationList({
  events,
  nextPageToken,
}: Pick<ListGenerationsResponse, "events" | "nextPageToken">): Static<typeof generationListSchema> {
  return { data: events.map(toListedBody), next_cursor: nextPageToken || null };
}

function toListedBody(event: GenerationEvent): Static<typeof listedGenerationSchema> {
  return {
    ...toGenerationBody(event),
    provider_slug: event.providerSlug || null,
    api_key_hash: event.keyHash,
    api_key_name: event.keyName || null,
    user_id: event.memberId || null,
  };
}

const filter = (name: string, description: string, schema = Type.String({ minLength: 1 })) =>
  ({ name, in: "query", description, schema }) satisfies ParameterDocument;

const document: RouteDocument = {
  id: "listGenerations",
  tag: "Usage",
  summary: "Generations, newest first",
  description:
    "Every request of the account that reached a provider, by the instant of its end, for as long as records are kept; one shows within 2 s of its end. Filters are combined by and. Management keys only.",
  parameters: [
    filter("from", "Only what ended at or after this instant, UTC.", utcInstantSchema),
    filter("to", "Only what ended before this instant, UTC.", utcInstantSchema),
    filter("model", "Only this model, as requests name it."),
    filter("provider", "Only what this provider (slug) served, or tried last."),
    filter(
      "api_key_hash",
      "Only what this key did: its SHA-256.",
      Type.String({ pattern: "^[0-9a-fA-F]{64}$" }),
    ),
    { ...filter("outcome", "Only what ended so."), schema: stringEnum(outcomes) },
    filter("user_id", "Only what this member did; for organizations alone.", Type.String({ format: "uuid" })),
    filter("session_id", "Only this session."),
    ...cursorParameters,
  ],
  answer: jsonAnswer(
    "A page of generations.",
    "GenerationList",
    generationListSchema,
    toGenerationList({ events: [exampleEvent], nextPageToken: "" }),
  ),
  errors: [400],
};

const outcomeValues: Readonly<Record<OutcomeWord, Outcome>> = {
  succeeded: Outcome.SUCCEEDED,
  failed: Outcome.FAILED,
  cancelled: Outcome.CANCELLED,
  lost: Outcome.LOST,
};

/** GET /api/v1/generations: the generations of the account, newest first. */
export function generationListRoute({ usage }: GenerationDependencies): Route {
  return serviceRoute({
    method: "GET",
    path: `${apiPath}/generations`,
    document,
    request: (exchange) => readQuery(exchange, askedGenerations),
    call: usage.listGenerations,
    wireNames: { ...cursorPageNames, member_id: "user_id" },
    answer: toGenerationList,
  });
}

function askedGenerations(query: QueryReader) {
  const [from, to] = [query.instant("from"), query.instant("to")];
  const outcome = query.word("outcome", outcomes);
  return {
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    model: query.text("model") ?? "",
    provider: query.text("provider") ?? "",
    apiKeyHash: query.keyHash("api_key_hash") ?? "",
    outcome: outcome === undefined ? Outcome.UNSPECIFIED : outcomeValues[outcome],
    memberId: query.text("user_id") ?? "",
    sessionId: query.text("session_id") ?? "",
    ...query.cursorPage(),
  };
}
