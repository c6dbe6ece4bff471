import { type RawBuilder, sql } from "kysely";
import { type Amounts, amountArrays, amountNames, amountTerms, eachAmount } from "./amounts.ts";
import type { CellOwner, NamingRow, RecordRow, UsageTransaction } from "./store.ts";

/** A table of sums, and how it names the time that a cell is of. */
export interface RollUpTable {
  readonly name: "activity" | "activity_hour";
  readonly period: "day" | "hour";
  readonly type: RawBuilder<unknown>;
  /** The period of a record, in SQL. */
  readonly periodOfRecord: RawBuilder<unknown>;
}

/** Sums by UTC day, for good. */
export const byDay: RollUpTable = {
  name: "activity",
  period: "day",
  type: sql`date`,
  periodOfRecord: sql`(record.ended_at AT TIME ZONE 'UTC')::date`,
};

/** Sums by UTC hour, of the last days. */
export const byHour: RollUpTable = {
  name: "activity_hour",
  period: "hour",
  type: sql`timestamptz`,
  periodOfRecord: sql`date_trunc('hour', record.ended_at, 'UTC')`,
};

/** What is to be added to one cell of a roll-up; negative where records leave it. */
interface CellChange extends CellOwner, Amounts {
  /** The day or the hour, as text. */
  readonly period: string;
  readonly requests: bigint;
  readonly last_ended_at: Date | null;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The changes that many records make to a table, merged by cell. */
export class RollUp {
  readonly #cells = new Map<string, Mutable<CellChange>>();
  readonly #table: RollUpTable;
  readonly #firstDay: string;

  /** Changes of records of days before `firstDay` are left out. */
  constructor(table: RollUpTable, firstDay: string) {
    this.#table = table;
    this.#firstDay = firstDay;
  }

  /** Counts a record in its cell. */
  add(row: RecordRow): void {
    this.#change(row, 1n);
  }

  /** Takes back what `add` of the same row counted. */
  subtract(row: RecordRow): void {
    this.#change(row, -1n);
  }

  /** The cells that change, in an order that is the same everywhere. */
  changes(): CellChange[] {
    return [...this.#cells]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, cell]) => cell)
      .filter(
        (cell) => cell.requests !== 0n || amountNames.some((name) => cell[name] !== 0n) || cell.last_ended_at,
      );
  }

  #change(row: RecordRow, sign: 1n | -1n): void {
    if (row.day < this.#firstDay) return;
    const { account_id, endpoint_id, key_hash, member_id, naming_id } = row;
    const period = row[this.#table.period];
    const key = `${account_id} ${period} ${endpoint_id} ${key_hash} ${member_id} ${naming_id}`;
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = { account_id, period, endpoint_id, key_hash, member_id, naming_id, ...nothing() };
      this.#cells.set(key, cell);
    }
    cell.requests += sign;
    for (const name of amountNames) cell[name] += sign * row[name];
    // Only records of revision 0 are ever taken back, and they name no instant.
    if (row.revision > 0 && sign > 0) cell.last_ended_at = later(cell.last_ended_at, row.ended_at);
  }
}

function nothing() {
  return {
    requests: 0n,
    ...eachAmount(() => 0n),
    last_ended_at: null as Date | null,
  };
}

function later(a: Date | null, b: Date): Date {
  return a === null || a < b ? b : a;
}

/** Adds changes to their cells, in the order given, which is the order in which cells are locked. */
export async function writeChanges(
  transaction: UsageTransaction,
  { name, period, type }: RollUpTable,
  changes: readonly CellChange[],
): Promise<void> {
  if (changes.length === 0) return;
  const column = <K extends keyof CellChange>(key: K) => changes.map((change) => change[key]);
  const ended = changes.map(({ last_ended_at }) => last_ended_at?.toISOString() ?? null);
  await sql`
    INSERT INTO ${sql.ref(name)} AS cell (account_id, ${sql.ref(period)}, endpoint_id, key_hash, member_id, naming_id,
      requests, ${amountTerms()}, last_ended_at)
    SELECT account_id, period, endpoint_id, decode(key_hash, 'hex'), member_id, naming_id, requests,
      ${amountTerms()}, last_ended_at
    FROM unnest(${column("account_id")}::uuid[], ${column("period")}::${type}[], ${column("endpoint_id")}::uuid[],
      ${column("key_hash")}::text[], ${column("member_id")}::uuid[], ${column("naming_id")}::uuid[],
      ${column("requests")}::bigint[], ${amountArrays(changes, amountNames)}, ${ended}::timestamptz[])
      AS change (account_id, period, endpoint_id, key_hash, member_id, naming_id, requests, ${amountTerms()},
        last_ended_at)
    ON CONFLICT (account_id, ${sql.ref(period)}, endpoint_id, key_hash, member_id, naming_id) DO UPDATE SET
      requests = cell.requests + excluded.requests,
      ${amountTerms((amount) => sql`${amount} = cell.${amount} + excluded.${amount}`)},
      last_ended_at = greatest(cell.last_ended_at, excluded.last_ended_at)`.execute(transaction);
}

/** Makes namings known, in an order that is the same everywhere. */
export async function writeNamings(
  transaction: UsageTransaction,
  namings: readonly NamingRow[],
): Promise<void> {
  const known = [...new Map(namings.map((naming) => [naming.id, naming])).values()];
  known.sort((a, b) => (a.id < b.id ? -1 : 1));
  await transaction
    .insertInto("naming")
    .values(known)
    .onConflict((conflict) => conflict.column("id").doNothing())
    .execute();
}
