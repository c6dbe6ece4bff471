import { sql } from "kysely";
import { amountTerms, eachAmount, type RecordedAmounts, recordedNames } from "./amounts.ts";
import { addDays } from "./day.ts";
import type { NamingRow, UsageDatabase } from "./store.ts";

/** How many days before today activity is shown of. */
const daysBeforeToday = 30;

/** The days that activity is shown of, first and last included, `YYYY-MM-DD`. */
interface ActivityWindow {
  readonly firstDay: string;
  readonly lastDay: string;
}

/** The window that ends with `today`. */
export function activityWindow(today: string): ActivityWindow {
  return { firstDay: addDays(today, -daysBeforeToday), lastDay: today };
}

/** Whose activity is asked for; what is undefined is not asked for. */
export interface ActivityFilter extends ActivityWindow {
  readonly accountId: string;
  readonly keyHash: string | undefined;
  readonly memberId: string | undefined;
}

/** What one endpoint did on one day, under the names it had last. */
export interface ActivityEntry extends RecordedAmounts, Omit<NamingRow, "id"> {
  readonly day: string;
  readonly endpoint_id: string;
  readonly requests: bigint;
}

interface NamedSum extends ActivityEntry {
  readonly naming_id: string;
  readonly last_ended_at: Date | null;
}

/** Activity from roll-ups alone, one entry a day and endpoint: day descending, charge descending, endpoint id. */
export async function listActivity(
  database: UsageDatabase,
  filter: ActivityFilter,
): Promise<ActivityEntry[]> {
  const { accountId, firstDay, lastDay, keyHash, memberId } = filter;
  const ofKey = keyHash === undefined ? sql`` : sql`AND key_hash = decode(${keyHash}, 'hex')`;
  const ofMember = memberId === undefined ? sql`` : sql`AND member_id = ${memberId}`;
  const { rows } = await sql<NamedSum>`
    SELECT summed.*, naming.model, naming.permaslug, naming.provider_name
    FROM (
      SELECT day, endpoint_id, naming_id, max(last_ended_at) AS last_ended_at, sum(requests)::bigint AS requests,
        ${amountTerms((amount) => sql`sum(${amount})::bigint AS ${amount}`, recordedNames)}
      FROM activity
      WHERE account_id = ${accountId} AND day BETWEEN ${firstDay} AND ${lastDay} ${ofKey} ${ofMember}
      GROUP BY day, endpoint_id, naming_id
    ) AS summed JOIN naming ON naming.id = summed.naming_id
    WHERE summed.requests > 0`.execute(database);
  return mergeNamings(rows).sort(byDayAndCharge);
}

/** One entry a day and endpoint: the names of the record of revision 1 that ended last, else those that sort last. */
function mergeNamings(sums: readonly NamedSum[]): ActivityEntry[] {
  const merged = new Map<string, NamedSum>();
  for (const sum of sums) {
    const key = `${sum.day} ${sum.endpoint_id}`;
    const other = merged.get(key);
    merged.set(key, other === undefined ? sum : isNamedLater(sum, other) ? add(sum, other) : add(other, sum));
  }
  return [...merged.values()];
}

function isNamedLater(a: NamedSum, b: NamedSum): boolean {
  const difference = (a.last_ended_at?.getTime() ?? 0) - (b.last_ended_at?.getTime() ?? 0);
  return difference === 0 ? a.naming_id > b.naming_id : difference > 0;
}

function add(named: NamedSum, other: NamedSum): NamedSum {
  return {
    ...named,
    requests: named.requests + other.requests,
    ...eachAmount((name) => named[name] + other[name], recordedNames),
  };
}

function byDayAndCharge(a: ActivityEntry, b: ActivityEntry): number {
  if (a.day !== b.day) return a.day < b.day ? 1 : -1;
  if (a.charged_nano_usd !== b.charged_nano_usd) return a.charged_nano_usd < b.charged_nano_usd ? 1 : -1;
  return a.endpoint_id < b.endpoint_id ? -1 : 1;
}
