import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  Api,
  type Attempt,
  type GenerationEvent,
  Outcome,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import { UsageService } from "../../../gen/media/usage/v1/usage_service_pb.ts";
import { cursorPage } from "../../../lib/limits/cursor-page.ts";
import { wordOf } from "../../../lib/limits/words.ts";
import { accountOption, type Input, type Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { type Fields, type Output, usd } from "../output.ts";

const maxRequests = 100_000;
const outcomes = {
  succeeded: Outcome.SUCCEEDED,
  failed: Outcome.FAILED,
  cancelled: Outcome.CANCELLED,
  lost: Outcome.LOST,
};
const columns = ["id", "ended_at", "model", "provider", "outcome", "reason", "took_ms", "charged_usd", "key"];

/** Single generations. */
export const request: Noun = {
  name: "request",
  alias: "requests",
  summary: "single requests of an account, once they ended",
  verbs: [
    {
      name: "list",
      summary: "requests, the one that ended last first",
      options: [
        accountOption,
        { name: "from", value: "instant", help: "those that ended then or later" },
        { name: "to", value: "instant", help: "those that ended before" },
        { name: "model", value: "model", help: "of this model" },
        { name: "provider", value: "slug", help: "that this provider served, or tried last" },
        { name: "key", value: "hash", help: "of this key" },
        { name: "member", value: "id", help: "of this member of an organization" },
        { name: "session", value: "id", help: "of this session" },
        { name: "outcome", value: "outcome", help: "succeeded, failed, cancelled or lost" },
        { name: "limit", value: "n", help: "how many; 50 unless given" },
      ],
      run: listRequests,
    },
    {
      name: "show",
      summary: "one request with its attempts",
      positionals: ["id"],
      options: [accountOption],
      async run(input, cli) {
        const { options } = await cli.seenBy(input.text("account"));
        const client = await cli.client(UsageService, "usage");
        const { event } = await client.getGeneration({ generationId: input.required("id") }, options);
        return { fields: event === undefined ? {} : detailFields(event) };
      },
    },
  ],
};

async function listRequests(input: Input, cli: Cli): Promise<Output> {
  let wanted = input.count("limit", maxRequests, 50) ?? 0;
  const [from, to] = [input.instant("from"), input.instant("to")];
  const filters = {
    model: input.text("model") ?? "",
    provider: input.text("provider") ?? "",
    apiKeyHash: input.text("key") ?? "",
    memberId: input.text("member") ?? "",
    sessionId: input.text("session") ?? "",
    outcome: input.word("outcome", outcomes) ?? Outcome.UNSPECIFIED,
    ...(from === undefined ? {} : { from: timestampFromDate(from) }),
    ...(to === undefined ? {} : { to: timestampFromDate(to) }),
  };
  const { options } = await cli.seenBy(input.text("account"));
  const client = await cli.client(UsageService, "usage");
  const rows: Fields[] = [];
  let pageToken = "";
  do {
    const pageSize = Math.min(wanted, cursorPage.limit.maximum);
    const page = await client.listGenerations({ ...filters, pageToken, pageSize }, options);
    rows.push(...page.events.map(requestFields));
    wanted -= page.events.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && wanted > 0);
  return { columns, rows };
}

function requestFields(event: GenerationEvent): Fields {
  const { eventId, model, providerSlug, reason, startedAt, endedAt, keyHash, keyName } = event;
  const [started, ended] = [startedAt && timestampDate(startedAt), endedAt && timestampDate(endedAt)];
  return {
    id: eventId,
    ended_at: ended,
    model,
    provider: providerSlug,
    outcome: outcomeOf(event),
    reason: reason || undefined,
    took_ms: started && ended && ended.getTime() - started.getTime(),
    charged_usd: usd(event.costNanoUsd),
    key: keyName || keyHash.slice(0, 12),
  };
}

function detailFields(event: GenerationEvent): Fields {
  const { accountId, memberId, keyHash, endUser, sessionId, requestId, tokens, units, firstByteAt } = event;
  const { key: _, ...fields } = requestFields(event);
  return {
    ...fields,
    medium: event.api === Api.IMAGE ? "images" : "speech",
    list_price_usd: usd(event.listPriceNanoUsd),
    own_key: event.byok,
    first_output_at: firstByteAt && timestampDate(firstByteAt),
    account: accountId,
    member: memberId || undefined,
    key: keyHash,
    end_user: endUser || undefined,
    session: sessionId || undefined,
    http_request: requestId || undefined,
    endpoint: event.endpointId,
    input_characters: units?.inputCharacters,
    images: units?.outputImages,
    input_tokens: tokens?.prompt,
    output_tokens: tokens?.completion,
    left_by_its_caller: event.cancelled,
    attempts: event.attempts.map(attemptWords),
  };
}

function attemptWords({ providerSlug, outcome, reason, providerStatus, durationMs }: Attempt): string {
  const status = providerStatus === 0 ? "" : ` (${providerStatus})`;
  const why = reason === "" ? "" : `: ${reason}${status}`;
  return `${providerSlug} ${wordOf(outcomes, outcome) ?? "unknown"}${why} after ${durationMs} ms`;
}

function outcomeOf({ outcome, revision }: GenerationEvent): string {
  return wordOf(outcomes, outcome) ?? `revision ${revision}`;
}
