import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import {
  type ListActivityRequest,
  type ListActivitySeriesRequest,
  type ListGenerationsRequest,
  SeriesGroup,
  SeriesStep,
} from "../../gen/media/usage/v1/usage_pb.ts";
import { isKeyHash } from "../../lib/identity/api-key.ts";
import { cursorPage } from "../../lib/limits/cursor-page.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";
import { type ActivityFilter, activityWindow } from "./activity.ts";
import { toListedText } from "./convert.ts";
import { dayOfMs, isDay, startOfDayMs } from "./day.ts";
import type { GenerationCursor, GenerationFilter } from "./generations/list-generations.ts";
import { firstDayOfHours } from "./prune.ts";
import type { SeriesFilter, SeriesGroupName } from "./series.ts";

/** Reads what activity is asked for. Throws `invalid_body`. */
export function fromProtoListActivityRequest(
  { date, apiKeyHash, memberId }: ListActivityRequest,
  principal: Principal,
  nowMs: number,
): ActivityFilter {
  const issues: Issue[] = [];
  const window = activityWindow(dayOfMs(nowMs));
  if (date !== "" && !isDay(date)) {
    issues.push({ path: "date", message: "must be a date written YYYY-MM-DD" });
  } else if (date !== "" && (date < window.firstDay || date > window.lastDay)) {
    issues.push({ path: "date", message: `must lie between ${window.firstDay} and ${window.lastDay}` });
  }
  checkOwner(issues, apiKeyHash, memberId, principal);
  if (issues.length > 0) throw DomainError.invalid(issues);
  return {
    accountId: principal.accountId,
    ...(date === "" ? window : { firstDay: date, lastDay: date }),
    keyHash: given(apiKeyHash.toLowerCase()),
    memberId: given(memberId),
  };
}

/** Reads which generations are asked for. Throws `invalid_body`. */
export function fromProtoListGenerationsRequest(
  request: ListGenerationsRequest,
  principal: Principal,
): GenerationFilter {
  const issues: Issue[] = [];
  const { apiKeyHash, memberId, pageToken, pageSize, outcome } = request;
  const fromMs = readInstantMs(issues, "from", request.from);
  const beforeMs = readInstantMs(issues, "to", request.to);
  checkOwner(issues, apiKeyHash, memberId, principal);
  if (!Object.values<number>(Outcome).includes(outcome))
    issues.push({ path: "outcome", message: "is not known" });
  const after = readCursor(pageToken);
  if (pageToken !== "" && after === undefined) {
    issues.push({ path: "page_token", message: "must come from the page before" });
  }
  const { maximum } = cursorPage.limit;
  if (pageSize < 0 || pageSize > maximum) {
    issues.push({ path: "page_size", message: `must be a whole number from 1 to ${maximum}` });
  }
  if (issues.length > 0) throw DomainError.invalid(issues);
  return {
    accountId: principal.accountId,
    fromMs,
    beforeMs,
    model: given(toListedText(request.model)),
    provider: given(toListedText(request.provider)),
    keyHash: given(apiKeyHash.toLowerCase()),
    outcome: outcome === Outcome.UNSPECIFIED ? undefined : outcome,
    memberId: given(memberId),
    sessionId: given(toListedText(request.sessionId)),
    after,
    limit: pageSize === 0 ? cursorPage.limit.default : pageSize,
  };
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Each step: how long it is, how much of it comes unless said, and where its sums begin. */
const steps = {
  hour: { ms: hourMs, usualMs: 48 * hourMs, firstDay: firstDayOfHours },
  day: {
    ms: dayMs,
    usualMs: 30 * dayMs,
    firstDay: (nowMs: number) => activityWindow(dayOfMs(nowMs)).firstDay,
  },
} as const;

const stepOf: Readonly<Partial<Record<SeriesStep, keyof typeof steps>>> = {
  [SeriesStep.HOUR]: "hour",
  [SeriesStep.DAY]: "day",
};

const groupOf: Readonly<Partial<Record<SeriesGroup, SeriesGroupName>>> = {
  [SeriesGroup.UNSPECIFIED]: "none",
  [SeriesGroup.MODEL]: "model",
  [SeriesGroup.PROVIDER]: "provider",
  [SeriesGroup.KEY]: "key",
  [SeriesGroup.MEMBER]: "member",
};

/** Reads which activity over time is asked for. Throws `invalid_body`. */
export function fromProtoListActivitySeriesRequest(
  request: ListActivitySeriesRequest,
  { accountId }: Principal,
  nowMs: number,
): SeriesFilter {
  const issues: Issue[] = [];
  const step = stepOf[request.step];
  if (step === undefined) issues.push({ path: "step", message: "must be hour or day" });
  const groupBy = groupOf[request.groupBy];
  if (groupBy === undefined) issues.push({ path: "group_by", message: "is not known" });
  const { ms, usualMs, firstDay } = steps[step ?? "day"];
  const askedMs = readInstantMs(issues, "from", request.from) ?? nowMs - usualMs;
  const toMs = readInstantMs(issues, "to", request.to) ?? nowMs;
  const fromMs = Math.floor(askedMs / ms) * ms;
  const firstMs = startOfDayMs(firstDay(nowMs));
  if (fromMs < firstMs && issues.length === 0) {
    issues.push({ path: "from", message: `must not lie before ${new Date(firstMs).toISOString()}` });
  }
  if (toMs <= askedMs && issues.length === 0) issues.push({ path: "to", message: "must lie after from" });
  if (issues.length > 0) throw DomainError.invalid(issues);
  // A step belongs to what is asked for once it has begun.
  return {
    accountId,
    step: step ?? "day",
    groupBy: groupBy ?? "none",
    fromMs,
    toMs: Math.ceil(Math.min(toMs, nowMs + dayMs) / ms) * ms,
  };
}

function given(text: string): string | undefined {
  return text === "" ? undefined : text;
}

function checkOwner(
  issues: Issue[],
  apiKeyHash: string,
  memberId: string,
  { organization }: Principal,
): void {
  if (apiKeyHash !== "" && !isKeyHash(apiKeyHash.toLowerCase())) {
    issues.push({ path: "api_key_hash", message: "must be 64 hex characters" });
  }
  if (memberId !== "" && !organization) {
    issues.push({ path: "member_id", message: "is only for organization accounts" });
  } else if (memberId !== "" && !isUuid(memberId)) {
    issues.push({ path: "member_id", message: "must be a UUID" });
  }
}

/** The last second of the year 9999. */
const lastSecond = 253_402_300_799n;

/** An instant as Unix milliseconds; undefined, with an issue, where it is out of range. */
function readInstantMs(issues: Issue[], path: string, instant: Timestamp | undefined): number | undefined {
  if (instant === undefined) return undefined;
  if (instant.seconds >= 0n && instant.seconds <= lastSecond) return Math.floor(timestampMs(instant));
  issues.push({ path, message: "must lie between 1970 and 9999" });
  return undefined;
}

/** What a page token says, which is `toPageToken` of a cursor. */
function readCursor(pageToken: string): GenerationCursor | undefined {
  const [, endedMs = "", eventId = ""] = /^(\d{1,15})\.([\x21-\x7e]{1,128})$/.exec(pageToken) ?? [];
  return eventId === "" || Number(endedMs) > 253_402_300_799_999
    ? undefined
    : { endedMs: Number(endedMs), eventId };
}

/** The page token that leads to what comes after a cursor; empty without one. */
export function toPageToken(cursor: GenerationCursor | undefined): string {
  return cursor === undefined ? "" : `${cursor.endedMs}.${cursor.eventId}`;
}
