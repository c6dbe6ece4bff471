import { type RawBuilder, sql } from "kysely";
import type { UsageDatabase } from "../store.ts";

/** Where a page ends: the next one begins with what comes after this record. */
export interface GenerationCursor {
  readonly endedMs: number;
  readonly eventId: string;
}

/** Which generations of an account are asked for; what is undefined is not. Instants are Unix milliseconds. */
export interface GenerationFilter {
  readonly accountId: string;
  readonly fromMs: number | undefined;
  readonly beforeMs: number | undefined;
  readonly model: string | undefined;
  /** The slug. */
  readonly provider: string | undefined;
  readonly keyHash: string | undefined;
  /** The number of media.event.v1.Outcome. */
  readonly outcome: number | undefined;
  readonly memberId: string | undefined;
  readonly sessionId: string | undefined;
  readonly after: GenerationCursor | undefined;
  readonly limit: number;
}

interface GenerationPage {
  readonly events: readonly { readonly event: Buffer }[];
  readonly next: GenerationCursor | undefined;
}

/**
 * Generations by the instant of their end, last first. Each filter has an index that begins with the account and ends with
 * that instant, so a page of one filter reads what it answers; of several, what the rarest of them has.
 */
export async function listGenerations(
  database: UsageDatabase,
  filter: GenerationFilter,
): Promise<GenerationPage> {
  const { limit } = filter;
  const { rows } = await sql<{ event_id: string; ended_at: Date; event: Buffer | null }>`
    SELECT page.event_id, page.ended_at, record.event
    FROM (
      SELECT event_id, ended_at FROM listing WHERE ${sql.join(conditions(filter), sql` AND `)}
      ORDER BY ended_at DESC, event_id DESC LIMIT ${limit + 1}
    ) AS page LEFT JOIN record ON record.event_id = page.event_id
    ORDER BY page.ended_at DESC, page.event_id DESC`.execute(database);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    // One that was pruned since is left out.
    events: page.flatMap(({ event }) => (event === null ? [] : [{ event }])),
    next:
      rows.length > limit && last !== undefined
        ? { endedMs: last.ended_at.getTime(), eventId: last.event_id }
        : undefined,
  };
}

function conditions(filter: GenerationFilter): RawBuilder<unknown>[] {
  const { fromMs, beforeMs, after, keyHash } = filter;
  const found = [sql`account_id = ${filter.accountId}`];
  const instant = (ms: number) => sql`${new Date(ms).toISOString()}::timestamptz`;
  if (fromMs !== undefined) found.push(sql`ended_at >= ${instant(fromMs)}`);
  if (beforeMs !== undefined) found.push(sql`ended_at < ${instant(beforeMs)}`);
  if (after !== undefined) {
    const end = instant(after.endedMs);
    // The first is what the index is entered by.
    found.push(sql`ended_at <= ${end}`, sql`(ended_at, event_id) < (${end}, ${after.eventId})`);
  }
  if (keyHash !== undefined) found.push(sql`key_hash = decode(${keyHash}, 'hex')`);
  for (const [column, value] of [
    ["model", filter.model],
    ["provider", filter.provider],
    ["outcome", filter.outcome],
    ["member_id", filter.memberId],
    ["session_id", filter.sessionId],
  ] as const) {
    if (value !== undefined) found.push(sql`${sql.ref(column)} = ${value}`);
  }
  return found;
}
