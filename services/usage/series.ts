import { type RawBuilder, sql } from "kysely";
import { type Amounts, amountTerms } from "./amounts.ts";
import { byDay, byHour } from "./roll-up.ts";
import { noMember, type UsageDatabase } from "./store.ts";

/** By what the points of a step are told apart. */
export type SeriesGroupName = "none" | "model" | "provider" | "key" | "member";

/** Which points are asked for: of the steps that begin at `fromMs` or later and before `toMs`, Unix milliseconds. */
export interface SeriesFilter {
  readonly accountId: string;
  readonly step: "hour" | "day";
  readonly fromMs: number;
  readonly toMs: number;
  readonly groupBy: SeriesGroupName;
}

/** What happened in one step, of one group. */
export interface SeriesEntry extends Amounts {
  readonly starts_at: Date;
  /** Empty where points are told apart by nothing, or where there is no member. */
  readonly group: string;
  readonly requests: bigint;
}

const groups: Readonly<Record<SeriesGroupName, RawBuilder<unknown>>> = {
  none: sql`''::text`,
  model: sql`naming.model`,
  provider: sql`naming.provider_name`,
  key: sql`encode(cell.key_hash, 'hex')`,
  member: sql`CASE WHEN cell.member_id = ${sql.lit(noMember)} THEN '' ELSE cell.member_id::text END`,
};

/** Activity over time from roll-ups alone: by step, charge descending, group. */
export async function listSeries(
  database: UsageDatabase,
  { accountId, step, fromMs, toMs, groupBy }: SeriesFilter,
): Promise<SeriesEntry[]> {
  const { name, period } = step === "hour" ? byHour : byDay;
  const column = sql.ref(`cell.${period}`);
  // Of a day as of an hour, its beginning is what is compared.
  const edge = (ms: number) => {
    const instant = new Date(ms).toISOString();
    return step === "hour" ? sql`${instant}::timestamptz` : sql`${instant.slice(0, 10)}::date`;
  };
  const starts = step === "hour" ? column : sql`${column}::timestamp AT TIME ZONE 'UTC'`;
  const joined =
    groupBy === "model" || groupBy === "provider" ? sql`JOIN naming ON naming.id = cell.naming_id` : sql``;
  const { rows } = await sql<SeriesEntry>`
    SELECT ${starts} AS starts_at, ${groups[groupBy]} AS "group", sum(cell.requests)::bigint AS requests,
      ${amountTerms((amount, amountName) => sql`sum(${sql.ref(`cell.${amountName}`)})::bigint AS ${amount}`)}
    FROM ${sql.ref(name)} AS cell ${joined}
    WHERE cell.account_id = ${accountId} AND ${column} >= ${edge(fromMs)} AND ${column} < ${edge(toMs)}
    GROUP BY ${column}, 2
    HAVING sum(cell.requests) > 0
    ORDER BY ${column}, charged_nano_usd DESC, 2`.execute(database);
  return rows;
}
