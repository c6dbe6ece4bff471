import { sql } from "kysely";
import type { DestinationDatabase, DestinationTransaction } from "../store.ts";
import type { SettingsKeeper } from "./settings-keeper.ts";

/** How sealed settings stood and stand. */
interface ResealedSettings {
  /** Sealed anew with the newest master key. */
  readonly resealed: number;
  /** Sealed with it before. */
  readonly current: number;
  /** Sealed with a key that is gone, or damaged; left as they are. */
  readonly unreadable: number;
}

const batchSize = 200;

/**
 * Seals the settings of all destinations with the newest master key, a batch a transaction. Repeating it goes on where it
 * was cut off; others may do the same at once. Throws the signal's reason.
 */
export async function resealDestinations(
  database: DestinationDatabase,
  keeper: SettingsKeeper,
  signal: AbortSignal,
): Promise<ResealedSettings> {
  const sums = { resealed: 0, current: 0, unreadable: 0 };
  let after: string | undefined;
  do {
    signal.throwIfAborted();
    const batch = await database
      .transaction()
      .execute((transaction) => resealBatch(transaction, keeper, after));
    for (const outcome of batch.outcomes) sums[outcome] += 1;
    after = batch.last;
  } while (after !== undefined);
  return sums;
}

interface ResealedBatch {
  readonly outcomes: readonly (keyof ResealedSettings)[];
  /** The id of the last one; undefined when there are no more behind it. */
  readonly last: string | undefined;
}

async function resealBatch(
  transaction: DestinationTransaction,
  keeper: SettingsKeeper,
  after: string | undefined,
): Promise<ResealedBatch> {
  let destinations = transaction
    .selectFrom("destination")
    .select(["id", "account_id", "sealed"])
    .where("deleted_at", "is", null);
  if (after !== undefined) destinations = destinations.where("id", ">", after);
  const rows = await destinations.orderBy("id").limit(batchSize).forNoKeyUpdate().execute();
  const results = rows.map((row) => ({ id: row.id, sealed: keeper.reseal(row) }));
  const changes = results.flatMap(({ id, sealed }) => (typeof sealed === "string" ? [] : [{ id, sealed }]));
  if (changes.length > 0) {
    await sql`UPDATE destination SET sealed = part.sealed
      FROM unnest(${changes.map(({ id }) => id)}::uuid[], ${changes.map(({ sealed }) => sealed)}::bytea[])
        AS part (id, sealed)
      WHERE destination.id = part.id`.execute(transaction);
  }
  return {
    outcomes: results.map(({ sealed }) => (typeof sealed === "string" ? sealed : "resealed")),
    last: rows.length < batchSize ? undefined : rows.at(-1)?.id,
  };
}
