/**
 * Owns what accounts say of their destinations.
 *
 * 1. An account has at most so many destinations of a type: whoever makes one holds the lock of account and type.
 * 2. Whoever changes one has seen it as it is: a change names the version that it was made from.
 * 3. A destination and its queue are made, changed and deleted together, the destination first. Without a queue nothing
 *    is queued or claimed, so that delivery ends with the transaction that deletes.
 * 4. Of a deleted destination the settings are erased; what waits for it is deleted in the background.
 */
import { sql } from "kysely";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type {
  DeliveryRow,
  DestinationDatabase,
  DestinationRow,
  DestinationTransaction,
  ShownDestinationRow,
} from "../store.ts";

/** Most destinations of one type that an account may have. */
export const maxDestinationsOfType = 5;

/** What an owner decides besides the type and its settings. */
export interface DestinationFields
  extends Pick<
    DestinationRow,
    | "name"
    | "privacy_mode"
    | "sampling_rate"
    | "key_hashes"
    | "filter_rules"
    | "tells_cost"
    | "tells_identity"
    | "tells_request_context"
  > {
  readonly enabled: boolean;
}

/** A destination to store, its settings sealed. */
type NewDestination = DestinationFields &
  Pick<DestinationRow, "id" | "account_id" | "type"> & { readonly sealed: Buffer };

/** What is to be different; what is undefined stays. */
export type DestinationChange = {
  readonly [F in keyof DestinationFields]: DestinationFields[F] | undefined;
} & {
  readonly sealed: Buffer | undefined;
};

/** Which destination of which account. */
export interface DestinationKey {
  readonly id: string;
  readonly accountId: string;
}

/** A page of a list. */
export interface Page {
  readonly offset: number;
  readonly limit: number;
}

/** What stands on a page, and how many there are in all. */
interface Listed<R> {
  readonly rows: readonly R[];
  readonly totalCount: bigint;
}

const lockClass = "destination";

/** Stores a destination. Throws `count_limit_reached` when the account has as many of the type as it may. */
export async function createDestination(
  database: DestinationDatabase,
  { enabled, filter_rules, ...fields }: NewDestination,
): Promise<ShownDestinationRow> {
  const { id, account_id, type } = fields;
  return database.transaction().execute(async (transaction) => {
    const name = JSON.stringify([lockClass, account_id, type]);
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(transaction); // 1.
    const { rows } = await sql<{ count: bigint }>`SELECT count(*) FROM destination
      WHERE account_id = ${account_id} AND type = ${type} AND deleted_at IS NULL`.execute(transaction);
    if ((rows[0]?.count ?? 0n) >= maxDestinationsOfType) {
      const message = `an account has at most ${maxDestinationsOfType} destinations of a type`;
      throw new DomainError(ErrorReason.COUNT_LIMIT_REACHED, message);
    }
    await transaction
      .insertInto("destination")
      .values({ ...fields, filter_rules: toJson(filter_rules) })
      .execute();
    await transaction.insertInto("lane").values({ destination_id: id, account_id, enabled }).execute(); // 3.
    return getDestination(transaction, { id, accountId: account_id });
  });
}

function toJson(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function shownDestinations(database: DestinationDatabase | DestinationTransaction, accountId: string) {
  return database
    .selectFrom("destination")
    .innerJoin("lane", "lane.destination_id", "destination.id")
    .where("destination.account_id", "=", accountId)
    .where("destination.deleted_at", "is", null);
}

/** An account's destinations, oldest first. */
export async function listDestinations(
  database: DestinationDatabase,
  accountId: string,
  { offset, limit }: Page,
): Promise<Listed<ShownDestinationRow>> {
  return atOneMoment(database, async (transaction) => {
    const rows = await shownDestinations(transaction, accountId)
      .selectAll("destination")
      .select(["lane.enabled", "lane.paused_at", "lane.operator_paused_at", "lane.last_failure"])
      .orderBy("destination.created_at")
      .orderBy("destination.id")
      .offset(offset)
      .limit(limit)
      .execute();
    const { count } = await shownDestinations(transaction, accountId)
      .select(sql<bigint>`count(*)`.as("count"))
      .executeTakeFirstOrThrow();
    return { rows, totalCount: count };
  });
}

/** Reads that all see what was there at one moment, so that a page and the count of all agree. */
function atOneMoment<T>(
  database: DestinationDatabase,
  read: (transaction: DestinationTransaction) => Promise<T>,
): Promise<T> {
  return database.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(read);
}

/** One destination. Throws `record_unknown`, also for one of another account or one that was deleted. */
export async function getDestination(
  database: DestinationDatabase | DestinationTransaction,
  { id, accountId }: DestinationKey,
): Promise<ShownDestinationRow> {
  const row = await shownDestinations(database, accountId)
    .where("destination.id", "=", id)
    .selectAll("destination")
    .select(["lane.enabled", "lane.paused_at", "lane.operator_paused_at", "lane.last_failure"])
    .executeTakeFirst();
  if (row === undefined) throw unknownDestination();
  return row;
}

/**
 * Changes a destination that is of the given version and resolves with what it is then; with undefined when it was
 * changed meanwhile, or deleted. New settings end a pause after sustained failure; they, and being enabled, end one
 * between two attempts.
 */
export async function changeDestination(
  database: DestinationDatabase,
  { id, version }: Pick<ShownDestinationRow, "id" | "version">,
  { enabled, filter_rules, ...fields }: DestinationChange,
): Promise<ShownDestinationRow | undefined> {
  return database.transaction().execute(async (transaction) => {
    const changed = await transaction
      .updateTable("destination")
      .set({
        ...fields,
        ...(filter_rules === undefined ? {} : { filter_rules: toJson(filter_rules) }),
        version: version + 1,
        updated_at: sql<Date>`now()`,
      })
      .where("id", "=", id)
      .where("version", "=", version) // 2.
      .where("deleted_at", "is", null)
      .returning("account_id")
      .executeTakeFirst();
    if (changed === undefined) return undefined;
    if (fields.sealed !== undefined) await tryAtOnce(transaction, id, sql`, max_events = NULL ${unpaused}`);
    if (enabled !== undefined) await tryAtOnce(transaction, id, sql`, enabled = ${enabled}`);
    return getDestination(transaction, { id, accountId: changed.account_id });
  });
}

const unpaused = sql`, paused_at = NULL, failures = 0, failing_since = NULL`;

/** What waits, if anything does and nobody sends it just now, is due. */
async function tryAtOnce(
  transaction: DestinationTransaction,
  id: string,
  assignments: ReturnType<typeof sql>,
): Promise<void> {
  await sql`UPDATE lane SET
      due_at = CASE WHEN lease_id IS NULL AND due_at IS NOT NULL THEN now() ELSE due_at END ${assignments}
    WHERE destination_id = ${id}`.execute(transaction);
}

/** Delivers again, and at once. Throws `record_unknown`. */
export function resumeDestination(
  database: DestinationDatabase,
  key: DestinationKey,
): Promise<ShownDestinationRow> {
  return changeLane(database, key, (transaction) => tryAtOnce(transaction, key.id, unpaused));
}

/** Delivers no more until somebody resumes it; what waits is kept as long as ever. Throws `record_unknown`. */
export function pauseDestination(
  database: DestinationDatabase,
  key: DestinationKey,
): Promise<ShownDestinationRow> {
  return changeLane(database, key, async (transaction) => {
    await sql`UPDATE lane SET paused_at = now(), operator_paused_at = now()
      WHERE destination_id = ${key.id} AND (paused_at = operator_paused_at) IS NOT TRUE`.execute(transaction);
  });
}

function changeLane(
  database: DestinationDatabase,
  key: DestinationKey,
  change: (transaction: DestinationTransaction) => Promise<void>,
): Promise<ShownDestinationRow> {
  return database.transaction().execute(async (transaction) => {
    const changed = await transaction
      .updateTable("destination")
      .set({ version: sql<number>`version + 1` })
      .where("id", "=", key.id)
      .where("account_id", "=", key.accountId)
      .where("deleted_at", "is", null)
      .returning("id")
      .executeTakeFirst();
    if (changed === undefined) throw unknownDestination();
    await change(transaction);
    return getDestination(transaction, key);
  });
}

/** Deletes a destination. Throws `record_unknown`, also for one deleted before. */
export async function deleteDestination(
  database: DestinationDatabase,
  { id, accountId }: DestinationKey,
): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    const deleted = await transaction
      .updateTable("destination")
      .set({ sealed: null, deleted_at: sql<Date>`now()` }) // 4.
      .where("id", "=", id)
      .where("account_id", "=", accountId)
      .where("deleted_at", "is", null)
      .returning("id")
      .executeTakeFirst();
    if (deleted === undefined) throw unknownDestination();
    await transaction.deleteFrom("lane").where("destination_id", "=", id).execute(); // 3.
  });
}

/** The log of a destination's deliveries, newest first. Throws `record_unknown`. */
export async function listDeliveries(
  database: DestinationDatabase,
  key: DestinationKey,
  { offset, limit }: Page,
): Promise<Listed<DeliveryRow>> {
  return atOneMoment(database, async (transaction) => {
    await getDestination(transaction, key);
    const deliveries = transaction.selectFrom("delivery").where("destination_id", "=", key.id);
    const newest = deliveries.selectAll().orderBy("sequence", "desc");
    const rows = await newest.offset(offset).limit(limit).execute();
    const { count } = await deliveries.select(sql<bigint>`count(*)`.as("count")).executeTakeFirstOrThrow();
    return { rows, totalCount: count };
  });
}

/** There is no such destination for this caller. */
export function unknownDestination(): DomainError {
  return new DomainError(ErrorReason.RECORD_UNKNOWN, "no such destination");
}
