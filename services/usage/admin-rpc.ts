import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { sql } from "kysely";
import type { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import { readPages } from "../../lib/database/read-pages.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { type SummarizedRow, toProtoSummary } from "./convert.ts";
import { addDays, isDay } from "./day.ts";
import { firstKeptDay } from "./prune.ts";
import { rebuildDay } from "./rebuild.ts";
import type { UsageDatabase } from "./store.ts";

const maxRecordsAnswered = 1000;
/** Of up to 64 KiB each. */
const maxEventsRead = 100;
/** Most days that one call may name. */
const maxDays = 31;
/** The last second of the year 9999. */
const lastSecond = 253_402_300_799n;

interface AdminHandlerOptions {
  readonly database: UsageDatabase;
  readonly clock: Clock;
  readonly retentionDays: number;
}

/** The handlers of UsageAdminService. */
export function createAdminHandlers(
  options: AdminHandlerOptions,
): Partial<ServiceImpl<typeof UsageAdminService>> {
  const { database, clock, retentionDays } = options;
  return {
    async *listUsageRecords({ from, to, withBilling }, { signal }) {
      const issues: Issue[] = [];
      const span = {
        from: readInstant(issues, "from", from),
        to: readInstant(issues, "to", to),
        withBilling,
      };
      if (issues.length > 0) throw DomainError.invalid(issues);
      const batchSize = withBilling ? maxEventsRead : maxRecordsAnswered;
      for await (const rows of listRecords(database, { ...span, batchSize }, signal)) {
        yield { records: rows.map(toProtoSummary) };
      }
    },
    async rebuildActivity({ fromDate, toDate, dryRun }, { signal }) {
      checkDays(fromDate, toDate);
      const firstDay = firstKeptDay(clock.nowMs(), retentionDays);
      const days = [];
      for (let day = fromDate; day <= toDate; day = addDays(day, 1)) {
        signal.throwIfAborted();
        const { day: date, ...found } = await rebuildDay(database, day, { firstDay, dryRun });
        days.push({ date, ...found });
      }
      return { days };
    },
  };
}

function readInstant(issues: Issue[], path: string, instant: Timestamp | undefined): Date {
  if (instant === undefined) issues.push({ path, message: "is required" });
  else if (instant.seconds < 0n || instant.seconds > lastSecond) {
    issues.push({ path, message: "must lie between 1970 and 9999" });
  }
  const { seconds, nanos } = instant ?? { seconds: 0n, nanos: 0 };
  return new Date(Number(seconds) * 1000 + Math.floor(nanos / 1e6));
}

function checkDays(fromDate: string, toDate: string): void {
  const issues: Issue[] = [];
  for (const [path, date] of Object.entries({ from_date: fromDate, to_date: toDate })) {
    if (!isDay(date)) issues.push({ path, message: "must be a date written YYYY-MM-DD" });
  }
  if (issues.length === 0 && toDate < fromDate) {
    issues.push({ path: "to_date", message: "must not lie before from_date" });
  } else if (issues.length === 0 && toDate >= addDays(fromDate, maxDays)) {
    issues.push({ path: "to_date", message: `must lie at most ${maxDays - 1} days after from_date` });
  }
  if (issues.length > 0) throw DomainError.invalid(issues);
}

/** Which records are listed: those that ended from `from` on and before `to`. */
interface RecordSpan {
  readonly from: Date;
  readonly to: Date;
  readonly withBilling?: boolean;
  readonly batchSize: number;
}

/** The records of a span as they stand at one instant, in batches, ordered by the bytes of their ids. */
export function listRecords(
  database: UsageDatabase,
  { from, to, withBilling = false, batchSize }: RecordSpan,
  signal: AbortSignal,
): AsyncGenerator<readonly SummarizedRow[], void> {
  const query = sql<SummarizedRow>`
    SELECT event_id, revision, account_id, charged_nano_usd, (ended_at AT TIME ZONE 'UTC')::date AS day,
      ${withBilling ? sql`event` : sql`NULL::bytea AS event`}
    FROM record WHERE ended_at >= ${from.toISOString()}::timestamptz AND ended_at < ${to.toISOString()}::timestamptz
    ORDER BY event_id`;
  return readPages(database, query, signal, batchSize);
}
