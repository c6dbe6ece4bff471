import { sql } from "kysely";
import type { HoldSummary } from "../../../gen/media/account/v1/account_admin_pb.ts";
import { prepared } from "../../../lib/database/prepared-statements.ts";
import { readPages } from "../../../lib/database/read-pages.ts";
import type { AccountDatabase, HoldRefusalName } from "../store.ts";

/*
 * Owns the holds of requests under way: credit that is taken off what an account may spend until the request's event,
 * or its release, closes the hold.
 * 1. The first of reserve and release to commit decides an id for good; a copy of either changes nothing.
 * 2. A reservation changes the line of its key, the account and the hold together, or writes its refusal alone.
 * 3. The functions of the schema lock holds by id, then lines of keys, then accounts, in whatever batch; nothing else
 *    locks two of these.
 */

/** Credit to hold for one request; amounts in nano-USD, 0 or more. */
export interface HoldRequest {
  readonly generationId: string;
  readonly accountId: string;
  readonly keyHash: string;
  /** The most that the account can be charged. */
  readonly amountNanoUsd: bigint;
  /** The most that own provider keys may serve at list price; counts for keys whose limit includes it. */
  readonly byokAmountNanoUsd: bigint;
  readonly deadline: Date;
  /** The event that is published when the request is lost. */
  readonly draft: Uint8Array;
}

/** What was decided about a reservation: held, closed before, or why it is refused for good. */
export type HoldDecision = "granted" | "closed" | HoldRefusalName;

/** Names a hold and whose it is. */
export interface HoldName {
  readonly generationId: string;
  readonly accountId: string;
}

/** What reconciliation needs of a hold; `revision` is that of the event that stands, null while there is none. */
export type HoldRecord = Omit<HoldSummary, "$typeName" | "$unknown" | "revision" | "deadline"> & {
  readonly revision: number | null;
  readonly deadline: Date;
};

/** Holds whose deadline is at or after `from` and before `to`. */
export interface HoldRange {
  readonly from: Date;
  readonly to: Date;
}

/**
 * Decides reservations in one statement, and answers in their order; ids must differ. A hold that is still open
 * `graceMs` after its deadline is published as lost. The clock of the database decides what is too late.
 */
export async function reserveCredit(
  database: AccountDatabase,
  requests: readonly HoldRequest[],
  graceMs: number,
): Promise<readonly HoldDecision[]> {
  // 1., 2., 3.
  const { rows } = await sql<{ decisions: HoldDecision[] }>`${prepared("reserve")} SELECT reserve(
    ${requests.map(({ generationId }) => generationId)},
    ${requests.map(({ accountId }) => accountId)},
    ${requests.map(({ keyHash }) => keyHash)},
    ${requests.map(({ amountNanoUsd }) => amountNanoUsd)},
    ${requests.map(({ byokAmountNanoUsd }) => byokAmountNanoUsd)},
    ${requests.map(({ deadline }) => deadline)},
    ${requests.map(({ draft }) => draft)},
    make_interval(secs => ${graceMs / 1000})) AS decisions`.execute(database);
  return rows[0]?.decisions ?? [];
}

/** Gives holds back in one statement; ids never heard of are remembered as released. */
export async function releaseHolds(database: AccountDatabase, holds: readonly HoldName[]): Promise<void> {
  // 1., 3.
  await sql`SELECT release(
    ${holds.map(({ generationId }) => generationId)},
    ${holds.map(({ accountId }) => accountId)})`.execute(database);
}

/** Holds of a span of time, ordered by generation id, at most 1,000 at a time, as they were when the reading began. */
export async function* listHolds(
  database: AccountDatabase,
  { from, to }: HoldRange,
  signal: AbortSignal,
): AsyncGenerator<readonly HoldRecord[]> {
  const query = sql<HoldRecord>`
    SELECT id AS "generationId", account_id AS "accountId", state, revision, cost_nano_usd AS "costNanoUsd",
      debited_nano_usd AS "debitedNanoUsd", seen, amount_nano_usd AS "amountNanoUsd", deadline
    FROM hold WHERE deadline >= ${from} AND deadline < ${to} ORDER BY id`;
  yield* readPages(database, query, signal);
}
