/**
 * Compares what account and usage say of the same requests. Both come ordered by the bytes of the generation id and are
 * walked side by side, so that any number of them fits in memory.
 */
import type { AccountBooks, HoldSummary } from "../../gen/media/account/v1/account_admin_pb.ts";
import type { UsageRecordSummary } from "../../gen/media/usage/v1/usage_pb.ts";

/** Something that is not as it must be. */
export interface Difference {
  /** A generation id, an account (UUID) or a UTC day. */
  readonly subject: string;
  /** What is wrong, in words. */
  readonly what: string;
}

/** The days that are asked for, YYYY-MM-DD; records around them are looked at for their holds alone. */
export interface DaySpan {
  readonly from: string;
  readonly to: string;
}

/** Counts of what was compared. */
export interface Compared {
  holds: number;
  records: number;
  /** Holds of requests that are under way. */
  open: number;
  /** Events that the usage topic has not brought back to account yet. */
  unseen: number;
}

/** The differences between holds and records, in order of their ids; counts into `compared`. */
export async function* compareRequests(
  holds: AsyncIterable<HoldSummary>,
  records: AsyncIterable<UsageRecordSummary>,
  days: DaySpan,
  compared: Compared,
): AsyncGenerator<Difference> {
  const holdSource = holds[Symbol.asyncIterator]();
  const recordSource = records[Symbol.asyncIterator]();
  let [hold, record] = [await holdSource.next(), await recordSource.next()];
  while (!hold.done || !record.done) {
    const order = hold.done
      ? 1
      : record.done
        ? -1
        : compareIds(hold.value.generationId, record.value.eventId);
    const ofHold = order <= 0 && !hold.done ? hold.value : undefined;
    const ofRecord = order >= 0 && !record.done ? record.value : undefined;
    if (ofHold !== undefined) countHold(ofHold, compared);
    if (ofRecord !== undefined) compared.records += 1;
    const subject = ofHold?.generationId ?? ofRecord?.eventId ?? "";
    for (const what of faultsOf(ofHold, ofRecord, days)) yield { subject, what };
    if (ofHold !== undefined) hold = await holdSource.next();
    if (ofRecord !== undefined) record = await recordSource.next();
  }
}

function compareIds(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function countHold({ state, seen }: HoldSummary, compared: Compared): void {
  compared.holds += 1;
  if (state === "open") compared.open += 1;
  if (state === "settled" && !seen) compared.unseen += 1;
}

function faultsOf(
  hold: HoldSummary | undefined,
  record: UsageRecordSummary | undefined,
  { from, to }: DaySpan,
): readonly string[] {
  if (hold === undefined) {
    if (record === undefined || record.date < from || record.date > to) return [];
    return ["has a record and no hold"];
  }
  const isClosed = hold.state === "settled" || hold.state === "lost";
  const faults: string[] = [];
  if (hold.debitedNanoUsd !== hold.costNanoUsd) {
    faults.push(
      `costs ${hold.costNanoUsd} nano-USD by its event, and the ledger debited ${hold.debitedNanoUsd}`,
    );
  }
  if (record === undefined) {
    if (isClosed) faults.push(`its hold is ${hold.state} and it has no record`);
    return faults;
  }
  if (!isClosed) faults.push(`its hold is ${hold.state} and it has a record`);
  else if (hold.revision !== record.revision) {
    faults.push(`its hold has revision ${hold.revision} and its record ${record.revision}`);
  }
  if (hold.accountId !== record.accountId) faults.push("its hold and its record name different accounts");
  if (isClosed && hold.costNanoUsd !== record.costNanoUsd) {
    faults.push(`its hold says ${hold.costNanoUsd} nano-USD and its record ${record.costNanoUsd}`);
  }
  return faults;
}

const pairs: readonly (readonly [keyof AccountBooks, keyof AccountBooks, string])[] = [
  ["grantedNanoUsd", "ledgerGrantedNanoUsd", "granted, and its ledger"],
  ["chargedNanoUsd", "ledgerChargedNanoUsd", "charged, and its ledger"],
  ["chargedNanoUsd", "keySpentNanoUsd", "charged, and its keys"],
  ["heldNanoUsd", "openHoldsNanoUsd", "held, and its open holds"],
  ["keyHeldNanoUsd", "openHoldsKeyNanoUsd", "held by its keys, and its open holds"],
  ["keyHeldNanoUsd", "keyDaysHeldNanoUsd", "held by its keys, and their days"],
  ["keySpentNanoUsd", "keyDaysSpentNanoUsd", "spent by its keys, and their days"],
  ["keyByokNanoUsd", "keyDaysByokNanoUsd", "served by own provider keys, and the days of its keys"],
];

/** What of an account's books does not add up. */
export function compareBooks(books: AccountBooks): readonly Difference[] {
  return pairs
    .filter(([one, other]) => books[one] !== books[other])
    .map(([one, other, words]) => ({
      subject: books.accountId,
      what: `${books[one]} nano-USD are ${words} say ${books[other]}`,
    }));
}
