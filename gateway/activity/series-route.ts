import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import Type, { type Static } from "typebox";
import {
  type ListActivitySeriesResponse,
  ListActivitySeriesResponseSchema,
  SeriesGroup,
  type SeriesPoint,
  SeriesStep,
} from "../../gen/media/usage/v1/usage_pb.ts";
import type { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { apiPath } from "../docs/openapi.ts";
import { jsonAnswer, type RouteDocument } from "../docs/route-document.ts";
import { type QueryReader, readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import { nullableString, stringEnum } from "../schema/field-schemas.ts";
import { formatInstant, utcInstantSchema } from "../schema/utc-instant.ts";

const steps = { hour: SeriesStep.HOUR, day: SeriesStep.DAY } as const;
const groups = {
  model: SeriesGroup.MODEL,
  provider: SeriesGroup.PROVIDER,
  key: SeriesGroup.KEY,
  member: SeriesGroup.MEMBER,
} as const;
const stepWords = Object.keys(steps) as (keyof typeof steps)[];
const groupWords = Object.keys(groups) as (keyof typeof groups)[];

const count = (description: string) => Type.Integer({ minimum: 0, description });

const seriesPointSchema = Type.Object({
  starts_at: Type.String({ format: "date-time", description: "When the step begins." }),
  group: nullableString({
    description:
      "The model, the provider's display name, the key's SHA-256 or the member; null where there is none.",
  }),
  requests: count("How many requests ended in the step."),
  errors: count("How many of them failed or were lost; that a caller left is no error."),
  prompt_tokens: count("As the provider reported them."),
  completion_tokens: count("As the provider reported them."),
  reasoning_tokens: count("The part of completion_tokens that was spent on reasoning."),
  cached_tokens: count("The part of prompt_tokens that came from the provider's cache."),
  usage: Type.Number({ minimum: 0, description: "What the account was charged, USD." }),
  byok_usage_inference: Type.Number({
    minimum: 0,
    description: "List price of what your own provider keys served, USD.",
  }),
  first_byte_counts: Type.Array(Type.Integer({ minimum: 0 }), {
    description:
      "How many had their first usable output within each of first_byte_bounds_ms and not within the one before; the last: later than all.",
  }),
});

const seriesSchema = Type.Object({
  data: Type.Array(seriesPointSchema, {
    description: "Ordered by step, usage descending, group. Where nothing ended there is no point.",
  }),
  first_byte_bounds_ms: Type.Array(Type.Integer({ minimum: 0 }), {
    description:
      "Upper bounds of the histogram, each included, from the beginning of a request; always the same.",
  }),
});

function toSeriesAnswer({
  points,
  firstByteBoundsMs,
}: ListActivitySeriesResponse): Static<typeof seriesSchema> {
  return { data: points.map(toPointBody), first_byte_bounds_ms: firstByteBoundsMs.map(Number) };
}

function toPointBody(point: SeriesPoint): Static<typeof seriesPointSchema> {
  return {
    starts_at: formatInstant(point.startsAt),
    group: point.group || null,
    requests: Number(point.requests),
    errors: Number(point.errors),
    prompt_tokens: Number(point.promptTokens),
    completion_tokens: Number(point.completionTokens),
    reasoning_tokens: Number(point.reasoningTokens),
    cached_tokens: Number(point.cachedTokens),
    usage: usdNumber(point.usageNanoUsd),
    byok_usage_inference: usdNumber(point.byokUsageInferenceNanoUsd),
    first_byte_counts: point.firstByteCounts.map(Number),
  };
}

const example = create(ListActivitySeriesResponseSchema, {
  points: [
    {
      startsAt: timestampFromMs(Date.UTC(2030, 0, 31, 12)),
      group: "author/model",
      requests: 12n,
      errors: 1n,
      usageNanoUsd: 15_300_000n,
      firstByteCounts: [0n, 3n, 7n, 1n, 0n, 0n, 0n, 0n, 0n, 0n, 0n],
    },
  ],
  firstByteBoundsMs: [100n, 200n, 400n, 800n, 1600n, 3200n, 6400n, 12_800n, 25_600n, 51_200n],
});

const document: RouteDocument = {
  id: "listActivitySeries",
  tag: "Usage",
  summary: "Activity by hour or day",
  description:
    "Requests, errors, spend and first bytes over time, in steps of UTC hours (of today and the eight days before it) or days (of today and the 30 before). The hours of a day add up to it, and days to GET /activity. Management keys only.",
  parameters: [
    {
      name: "step",
      in: "query",
      description: "How long a step is.",
      schema: stringEnum(stepWords),
      required: true,
    },
    {
      name: "from",
      in: "query",
      description:
        "The first step is the one that this instant lies in, UTC; 48 hours or 30 days ago unless given.",
      schema: utcInstantSchema,
    },
    {
      name: "to",
      in: "query",
      description: "Only steps that begin before this instant, UTC; now unless given.",
      schema: utcInstantSchema,
    },
    {
      name: "group_by",
      in: "query",
      description: "By what the points of a step are told apart; one point a step without it.",
      schema: stringEnum(groupWords),
    },
  ],
  answer: jsonAnswer("The activity over time.", "ActivitySeries", seriesSchema, toSeriesAnswer(example)),
  errors: [400],
};

/** GET /api/v1/activity/series: what the account did, over time. */
export function activitySeriesRoute({ usage }: { readonly usage: Client<typeof UsageService> }): Route {
  return serviceRoute({
    method: "GET",
    path: `${apiPath}/activity/series`,
    document,
    request: (exchange) => readQuery(exchange, askedSeries),
    call: usage.listActivitySeries,
    answer: toSeriesAnswer,
  });
}

function askedSeries(query: QueryReader) {
  const step = query.word("step", stepWords);
  if (step === undefined) query.addIssue("step", "is required");
  const [from, to] = [query.instant("from"), query.instant("to")];
  const group = query.word("group_by", groupWords);
  return {
    step: step === undefined ? SeriesStep.UNSPECIFIED : steps[step],
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    groupBy: group === undefined ? SeriesGroup.UNSPECIFIED : groups[group],
  };
}
