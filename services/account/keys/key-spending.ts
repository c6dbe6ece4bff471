import { sql } from "kysely";
import type { AccountDatabase, ApiKeyRow, LimitResetName } from "../store.ts";

/** An amount of nano-USD in all, and since the UTC day, the week (from Monday) and the month began. */
export type PeriodSums = Readonly<Record<"total" | LimitResetName, bigint>>;

/** What a line of rotated keys has spent, has used of own provider keys at list price, and has on hold. */
export interface LineSpending {
  readonly spent: PeriodSums;
  readonly byok: PeriodSums;
  readonly held: PeriodSums;
}

const nothing: PeriodSums = { total: 0n, daily: 0n, weekly: 0n, monthly: 0n };

/** Of a line that no request has used yet. */
export const noSpending: LineSpending = { spent: nothing, byok: nothing, held: nothing };

interface SpendingRow {
  readonly rate_bucket: string;
  readonly period: keyof PeriodSums;
  readonly spent: bigint;
  readonly byok: bigint;
  readonly held: bigint;
}

/** The day by the database's clock, as reservations are counted by. */
const databaseDay = sql<string>`(now() AT TIME ZONE 'UTC')::date`;

/**
 * What lines have spent, by rate bucket; a line that is not in the answer has spent nothing. A request counts on the UTC
 * day on which its credit was held. `today` is the database's unless given.
 */
export async function readSpending(
  database: AccountDatabase,
  rateBuckets: readonly string[],
  today = databaseDay,
): Promise<ReadonlyMap<string, LineSpending>> {
  const { rows } = await sql<SpendingRow>`
    WITH period (name, first_day) AS (
      SELECT name, date_trunc(unit, ${today}::timestamp)::date
      FROM (VALUES ('daily', 'day'), ('weekly', 'week'), ('monthly', 'month')) AS unit (name, unit)
    )
    SELECT rate_bucket, name AS period, sum(spent_nano_usd)::bigint AS spent, sum(byok_nano_usd)::bigint AS byok,
      sum(held_nano_usd)::bigint AS held
    FROM period JOIN key_line_day ON day >= first_day
    WHERE rate_bucket = ANY (${rateBuckets})
    GROUP BY rate_bucket, name
    UNION ALL
    SELECT rate_bucket, 'total', spent_nano_usd, byok_nano_usd, held_nano_usd
    FROM key_line WHERE rate_bucket = ANY (${rateBuckets})`.execute(database);
  const spending = new Map<string, LineSpending>();
  for (const { rate_bucket, period, spent, byok, held } of rows) {
    const line = spending.get(rate_bucket) ?? noSpending;
    spending.set(rate_bucket, {
      spent: { ...line.spent, [period]: spent },
      byok: { ...line.byok, [period]: byok },
      held: { ...line.held, [period]: held },
    });
  }
  return spending;
}

/** A key's limit, as stored. */
export type KeyLimit = Pick<ApiKeyRow, "limit_nano_usd" | "limit_reset" | "include_byok_in_limit">;

/**
 * What a key may still spend in the current period of its limit, nano-USD, never below 0; undefined without a limit. What
 * is on hold is taken off, as a reservation is refused by the same sum.
 */
export function limitRemaining(key: KeyLimit, { spent, byok, held }: LineSpending): bigint | undefined {
  if (key.limit_nano_usd === null) return undefined;
  const period = key.limit_reset ?? "total";
  const ownKeys = key.include_byok_in_limit ? byok[period] : 0n;
  const remaining = key.limit_nano_usd - spent[period] - ownKeys - held[period];
  return remaining > 0n ? remaining : 0n;
}
