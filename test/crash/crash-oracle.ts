/**
 * Whether every request left exactly one record, told by sets of tags: those that clients sent, those that the upstream
 * saw, those that records name. Nothing is counted against anything.
 */
import { fromBinary } from "@bufbuild/protobuf";
import {
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
  OutcomeSchema,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import type { Absence } from "../support/processes/absences.ts";
import { waitUntil } from "../support/wait-until.ts";
import { databaseName } from "./crash-database.ts";
import type { ClientOutcome, CrashLoad } from "./crash-load.ts";
import { type CrashStack, crashTimes } from "./crash-stack.ts";
import { tagOf } from "./crash-traffic.ts";

/** A record as usage stores it. */
export interface StoredRecord {
  readonly revision: number;
  readonly costNanoUsd: bigint;
  readonly event: GenerationEvent;
}

/** What the oracle compares. */
export interface CrashEvidence {
  /** By tag. */
  readonly clients: ReadonlyMap<string, ClientOutcome>;
  /** How many times the upstream saw each tag. */
  readonly visits: ReadonlyMap<string, number>;
  readonly records: ReadonlyMap<string, readonly StoredRecord[]>;
  readonly absences: readonly Absence[];
}

/** What it found. */
export interface Verdict {
  /** Each a tag and what is wrong with it. */
  readonly faults: readonly string[];
  /** Tags whose records are `lost`. */
  readonly lost: readonly string[];
  /** Tags with a record that the upstream never saw. */
  readonly unseenUpstream: readonly string[];
}

/** Until everything has arrived: generous, since a group needs its time to notice that a member has died. */
const settledWithin = { timeoutMs: 180_000, intervalMs: 250 };

/** Resolves when no hold is open and each event has been met on the topic. */
export async function waitUntilSettled({ database }: Pick<CrashStack, "database">): Promise<void> {
  await waitUntil(async () => {
    const [row] = await database.query<{ count: string }>(
      "SELECT count(*) FROM account.hold WHERE state = 'open' OR (state = 'settled' AND NOT seen)",
    );
    return row?.count === "0";
  }, settledWithin);
}

/** Every record there is, by the tag in its session id. */
export async function readRecords({
  database,
}: Pick<CrashStack, "database">): Promise<ReadonlyMap<string, readonly StoredRecord[]>> {
  const rows = await database.query<{ revision: number; charged: string; event: Buffer }>(
    "SELECT revision, charged_nano_usd AS charged, event FROM usage.record",
  );
  const records = rows.map(({ revision, charged, event }) => ({
    revision,
    costNanoUsd: BigInt(charged),
    event: fromBinary(GenerationEventSchema, event),
  }));
  return Map.groupBy(records, ({ event }) => event.sessionId);
}

/** How many times the upstream saw each tag. */
export function readVisits({ upstream }: Pick<CrashStack, "upstream">): ReadonlyMap<string, number> {
  const visits = new Map<string, number>();
  for (const { text } of upstream.requests) {
    const tag = tagOf(text) ?? "";
    visits.set(tag, (visits.get(tag) ?? 0) + 1);
  }
  return visits;
}

/** Compares the sets. */
export function judge(evidence: CrashEvidence): Verdict {
  const { clients, visits, records } = evidence;
  const faults: string[] = [];
  for (const tag of visits.keys())
    if (!clients.has(tag)) faults.push(`${tag}: seen upstream, and nobody sent it`);
  for (const tag of records.keys())
    if (!clients.has(tag)) faults.push(`${tag}: has a record, and nobody sent it`);
  const lost: string[] = [];
  const unseenUpstream: string[] = [];
  for (const [tag, client] of clients) {
    const [record, ...others] = records.get(tag) ?? [];
    const tell = (fault: string) => faults.push(`${tag}: ${fault} (${describe(client)})`);
    if (others.length > 0) tell(`has ${others.length + 1} records`);
    if (record === undefined) {
      if (visits.has(tag)) tell("was seen upstream and has no record");
      if (client.result === "whole") tell("was answered and has no record");
      if (client.namesAttempts) tell("names attempts and has no record");
      continue;
    }
    if (record.revision === 0) lost.push(tag);
    if (!visits.has(tag)) unseenUpstream.push(tag);
    for (const fault of faultsOfRecord(record, visits.get(tag) ?? 0, client, evidence.absences)) tell(fault);
  }
  return { faults, lost, unseenUpstream };
}

function faultsOfRecord(
  { revision, costNanoUsd, event }: StoredRecord,
  visits: number,
  client: ClientOutcome,
  absences: readonly Absence[],
): readonly string[] {
  const faults: string[] = [];
  const { outcome, attempts } = event;
  const expect = (isTrue: boolean, fault: string) => {
    if (!isTrue) faults.push(fault);
  };
  if (client.result === "whole") {
    expect(outcome === Outcome.SUCCEEDED, `was answered and its record says ${wordOf(outcome)}`);
    const { costNanoUsd: known } = client.request;
    expect(costNanoUsd > 0n && costNanoUsd === (known ?? costNanoUsd), `costs ${costNanoUsd}, not ${known}`);
  }
  if (client.namesAttempts)
    expect(outcome === Outcome.FAILED, `failed and its record says ${wordOf(outcome)}`);
  if (visits === 0) expect(outcome !== Outcome.SUCCEEDED, "succeeded and was never seen upstream");
  if (revision > 0) {
    expect(attempts.length >= visits, `names ${attempts.length} attempts and the upstream saw ${visits}`);
  } else {
    expect(outcome === Outcome.LOST && costNanoUsd === 0n, `is lost and costs ${costNanoUsd}`);
    const isAllowed = diedWith(client, absences) || (visits === 0 && wasCutOff(client, absences));
    expect(isAllowed, "is lost though its process lived");
  }
  return faults;
}

/** How long a service may go on with a request whose client has gone, until its event is safe, milliseconds. */
const goesOnMs = 10_000;

/**
 * Whether a request was under way in a process that was killed. Who has a whole answer, or an error that names attempts,
 * knows that its event was safe; any other client may be gone while its service still waits for that.
 */
function diedWith({ request, startedMs, endedMs }: ClientOutcome, absences: readonly Absence[]): boolean {
  const lastMs = endedMs + goesOnMs;
  return absences.some(
    ({ name, fromMs }) =>
      name === `${request.api} ${request.side}` && fromMs >= startedMs && fromMs <= lastMs,
  );
}

/** How long a service may take to give a hold back once its account is there again, milliseconds. */
const releasedWithinMs = 5000;

/**
 * Whether a request that came to no attempt was cut off from its account until its hold was past deadline and grace:
 * nothing could give the hold back before it counted as lost.
 */
function wasCutOff({ request, startedMs, endedMs }: ClientOutcome, absences: readonly Absence[]): boolean {
  const lostMs = startedMs + crashTimes.requestMs + crashTimes.holdGraceMs;
  return absences.some(
    ({ name, fromMs, toMs }) =>
      (name === `account ${request.side}` || name === databaseName) &&
      fromMs <= endedMs &&
      toMs >= lostMs - releasedWithinMs,
  );
}

/** How a load went, for people: results, what is lost, and what has a record and was never seen upstream. */
export function reportOf(load: CrashLoad, { lost, unseenUpstream }: Verdict): string {
  const results = Map.groupBy(load.outcomes.values(), ({ result }) => result);
  const describeAll = (tags: readonly string[]) => {
    const own = tags.flatMap((tag) => load.outcomes.get(tag) ?? []);
    return own.map((client) => `\n    ${client.request.tag} (${describe(client)})`).join("") || " none";
  };
  return [
    `${load.name}: ${load.outcomes.size} requests in ${Math.round(load.durationMs)} ms`,
    ...[...results].map(([result, { length }]) => `, ${length} ${result}`),
    `\n  lost:${describeAll(lost)}`,
    `\n  recorded and never seen upstream:${describeAll(unseenUpstream)}\n`,
  ].join("");
}

function wordOf(outcome: Outcome): string {
  return OutcomeSchema.value[outcome]?.localName ?? String(outcome);
}

function describe({ request, result, status, reason }: ClientOutcome): string {
  return [request.api, request.side, result, status === 0 ? "" : status, reason].join(" ").trim();
}
