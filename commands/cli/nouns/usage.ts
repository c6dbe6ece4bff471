import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ActivityItem, SeriesPoint } from "../../../gen/media/usage/v1/usage_pb.ts";
import { SeriesGroup, SeriesStep } from "../../../gen/media/usage/v1/usage_pb.ts";
import { UsageService } from "../../../gen/media/usage/v1/usage_service_pb.ts";
import { accountOption, type Input, type Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { type Fields, type Output, usd } from "../output.ts";

const steps = { hour: SeriesStep.HOUR, day: SeriesStep.DAY };
const groups = {
  model: SeriesGroup.MODEL,
  provider: SeriesGroup.PROVIDER,
  key: SeriesGroup.KEY,
  member: SeriesGroup.MEMBER,
};
const sums = ["requests", "input_tokens", "output_tokens", "charged_usd", "own_keys_usd"];

/** What accounts used. */
export const usage: Noun = {
  name: "usage",
  summary: "what an account used, summed",
  verbs: [
    {
      name: "list",
      summary: "by day and endpoint, of today and the 30 days before it",
      options: [
        accountOption,
        { name: "date", value: "YYYY-MM-DD", help: "of this UTC day alone" },
        { name: "key", value: "hash", help: "of this key alone" },
        { name: "member", value: "id", help: "of this member of an organization alone" },
      ],
      run: listUsage,
    },
    {
      name: "series",
      summary: "over time",
      options: [
        accountOption,
        { name: "step", value: "step", help: "day (unless given) or hour" },
        { name: "from", value: "instant", help: "30 days or 48 hours ago unless given" },
        { name: "to", value: "instant", help: "now unless given" },
        { name: "by", value: "what", help: "model, provider, key or member" },
      ],
      run: listSeries,
    },
  ],
};

async function listUsage(input: Input, cli: Cli): Promise<Output> {
  const { options } = await cli.seenBy(input.text("account"));
  const client = await cli.client(UsageService, "usage");
  const request = {
    date: input.text("date") ?? "",
    apiKeyHash: input.text("key") ?? "",
    memberId: input.text("member") ?? "",
  };
  const { items } = await client.listActivity(request, options);
  return { columns: ["date", "model", "provider", ...sums], rows: items.map(itemFields) };
}

function itemFields(item: ActivityItem): Fields {
  return {
    date: item.date,
    model: item.model,
    provider: item.providerName,
    requests: item.requests,
    input_tokens: item.promptTokens,
    output_tokens: item.completionTokens,
    charged_usd: usd(item.usageNanoUsd),
    own_keys_usd: usd(item.byokUsageInferenceNanoUsd),
  };
}

async function listSeries(input: Input, cli: Cli): Promise<Output> {
  const [from, to] = [input.instant("from"), input.instant("to")];
  const group = input.text("by");
  const request = {
    step: input.word("step", steps) ?? SeriesStep.DAY,
    groupBy: input.word("by", groups) ?? SeriesGroup.UNSPECIFIED,
    ...(from === undefined ? {} : { from: timestampFromDate(from) }),
    ...(to === undefined ? {} : { to: timestampFromDate(to) }),
  };
  const { options } = await cli.seenBy(input.text("account"));
  const { points } = await (await cli.client(UsageService, "usage")).listActivitySeries(request, options);
  const columns = [
    "begins_at",
    ...(group === undefined ? [] : [group]),
    "requests",
    "errors",
    ...sums.slice(1),
  ];
  return { columns, rows: points.map((point) => pointFields(point, group)) };
}

function pointFields(point: SeriesPoint, group: string | undefined): Fields {
  return {
    begins_at: point.startsAt && timestampDate(point.startsAt),
    ...(group === undefined ? {} : { [group]: point.group }),
    requests: point.requests,
    errors: point.errors,
    input_tokens: point.promptTokens,
    output_tokens: point.completionTokens,
    charged_usd: usd(point.usageNanoUsd),
    own_keys_usd: usd(point.byokUsageInferenceNanoUsd),
  };
}
