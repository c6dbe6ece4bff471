import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  ReleaseRequest,
  Reservation,
  ReserveRequest,
  SettleRequest,
} from "../../../gen/media/account/v1/account_internal_pb.ts";
import {
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import { eventFault, maxEventBytes, toEventMessage } from "../../../lib/events/event-message.ts";
import { FieldIssues } from "../field-issues.ts";
import type { HoldName, HoldRequest } from "./holds.ts";
import { maxNanoUsd } from "./settlements.ts";

/** Most reservations, events or holds in one call. */
export const maxBatchItems = 256;

/** Longest life of a hold, milliseconds: longer than any request may take, so that none keeps credit for good. */
const maxHoldMs = 25 * 3_600_000;
const generationIdPattern = /^[\w-]{1,64}$/;

/** The reservations of a call. Throws `invalid_body`. */
export function fromProtoReserveRequest({ reservations }: ReserveRequest, nowMs: number): HoldRequest[] {
  const issues = new FieldIssues();
  const ids = reservations.map(({ generationId }) => generationId);
  checkBatch(issues, "reservations", ids);
  const requests = reservations.flatMap(
    (reservation, index) => fromProtoReservation(issues, `reservations[${index}]`, reservation, nowMs) ?? [],
  );
  issues.throwIfAny();
  return requests;
}

/** The events of a call, faults of single ones aside. Throws `invalid_body`. */
export function fromProtoSettleRequest({ events }: SettleRequest): readonly GenerationEvent[] {
  const issues = new FieldIssues();
  const ids = events.map(({ eventId }) => eventId);
  checkBatch(issues, "events", ids);
  issues.throwIfAny();
  return events;
}

/** The holds that a call gives back. Throws `invalid_body`. */
export function fromProtoReleaseRequest({ holds }: ReleaseRequest): readonly HoldName[] {
  const issues = new FieldIssues();
  const ids = holds.map(({ generationId }) => generationId);
  checkBatch(issues, "holds", ids);
  for (const [index, { generationId, accountId }] of holds.entries()) {
    if (!generationIdPattern.test(generationId)) {
      issues.add(`holds[${index}].generation_id`, "must be 1 to 64 letters, digits, - or _");
    }
    issues.checkUuid(`holds[${index}].account_id`, accountId);
  }
  issues.throwIfAny();
  return holds;
}

function checkBatch(issues: FieldIssues, path: string, ids: readonly string[]): void {
  if (ids.length < 1 || ids.length > maxBatchItems) {
    issues.add(path, `must have 1 to ${maxBatchItems} items`);
  } else if (new Set(ids).size < ids.length) {
    issues.add(path, "must have different ids");
  }
}

function fromProtoReservation(
  issues: FieldIssues,
  path: string,
  reservation: Reservation,
  nowMs: number,
): HoldRequest | undefined {
  const { generationId, principal, amountNanoUsd, byokAmountNanoUsd } = reservation;
  checkAmount(issues, `${path}.amount_nano_usd`, amountNanoUsd);
  checkAmount(issues, `${path}.byok_amount_nano_usd`, byokAmountNanoUsd);
  const deadline = readDeadline(issues, `${path}.deadline`, reservation, nowMs);
  if (deadline === undefined) return undefined;
  const lost = toLostEvent(reservation, deadline);
  const draft = toEventMessage(lost).value;
  const fault = draft.length > maxEventBytes ? "is too large" : eventFault(lost);
  if (fault !== undefined) issues.add(`${path}.draft`, fault);
  const { accountId = "", keyHash = "" } = principal ?? {};
  return { generationId, accountId, keyHash, amountNanoUsd, byokAmountNanoUsd, deadline, draft };
}

function checkAmount(issues: FieldIssues, path: string, amount: bigint): void {
  if (amount < 0n || amount > maxNanoUsd) issues.add(path, `must be from 0 to ${maxNanoUsd}`);
}

function readDeadline(
  issues: FieldIssues,
  path: string,
  { deadline }: Reservation,
  nowMs: number,
): Date | undefined {
  if (deadline === undefined) {
    issues.add(path, "is required");
    return undefined;
  }
  const instant = issues.toDate(path, deadline);
  if (instant === undefined || instant.getTime() <= nowMs + maxHoldMs) return instant;
  issues.add(path, "lies too far ahead");
  return undefined;
}

/** The draft as the event it becomes when the request is lost; whose it is comes from the principal. */
function toLostEvent({ generationId, principal, draft }: Reservation, deadline: Date): GenerationEvent {
  return {
    ...(draft ?? create(GenerationEventSchema)),
    eventId: generationId,
    accountId: principal?.accountId ?? "",
    memberId: principal?.memberId ?? "",
    keyHash: principal?.keyHash ?? "",
    revision: 0,
    outcome: Outcome.LOST,
    costNanoUsd: 0n,
    listPriceNanoUsd: 0n,
    endedAt: timestampFromDate(deadline),
  };
}
