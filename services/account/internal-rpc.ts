import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Principal,
  type RecordDestinationActionRequest,
  ReservationOutcome,
  SettleOutcome,
} from "../../gen/media/account/v1/account_internal_pb.ts";
import type { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { maxEventAgeMs } from "../../lib/events/event-age.ts";
import { bytesOfEvent } from "../../lib/events/event-message.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { getAccount } from "./accounts/accounts.ts";
import { writeAudit } from "./accounts/audit.ts";
import { redeemConsoleLink } from "./accounts/console-links.ts";
import { FieldIssues } from "./field-issues.ts";
import { checkKeyHash } from "./keys/key-requests.ts";
import {
  fromProtoReleaseRequest,
  fromProtoReserveRequest,
  fromProtoSettleRequest,
} from "./money/hold-requests.ts";
import { type HoldDecision, releaseHolds, reserveCredit } from "./money/holds.ts";
import {
  type SettlementOptions,
  type SettlementOutcome,
  settlementFault,
  settleReported,
} from "./money/settlements.ts";

interface InternalRpcOptions extends SettlementOptions {
  /** Who a key speaks for, by its hash. Throws `key_unknown`, `key_disabled` or `key_expired`. */
  lookUpKey(keyHash: string, signal: AbortSignal): Promise<Principal>;
  readonly clock: Clock;
  /** How long after its deadline an open hold is published as lost. */
  readonly holdGraceMs: number;
  readonly retentionDays: number;
}

const reservationOutcomes: Readonly<Record<HoldDecision, ReservationOutcome>> = {
  granted: ReservationOutcome.GRANTED,
  closed: ReservationOutcome.CLOSED,
  credits: ReservationOutcome.CREDITS_EXHAUSTED,
  key_limit: ReservationOutcome.KEY_LIMIT_REACHED,
  too_late: ReservationOutcome.TOO_LATE,
};
const destinationActions = ["pause", "resume", "test"] as const;
const settleOutcomes: Readonly<Record<SettlementOutcome, SettleOutcome>> = {
  stored: SettleOutcome.STORED,
  unknown: SettleOutcome.HOLD_UNKNOWN,
  closed: SettleOutcome.HOLD_CLOSED,
};

/** The handlers of AccountInternalService. */
export function createInternalHandlers(
  options: InternalRpcOptions,
): Partial<ServiceImpl<typeof AccountInternalService>> {
  const { database, clock, holdGraceMs } = options;
  return {
    async authenticate({ keyHash }, { signal }) {
      const principal = await options.lookUpKey(checkKeyHash(keyHash, "key_hash"), signal);
      return { principal };
    },
    async reserve(request) {
      const holds = fromProtoReserveRequest(request, clock.nowMs());
      const decisions = await reserveCredit(database, holds, holdGraceMs);
      const outcomes = decisions.map((decision) => reservationOutcomes[decision]);
      return { outcomes };
    },
    async settle(request) {
      return {
        outcomes: await settle(options, fromProtoSettleRequest(request)),
      };
    },
    async release(request) {
      await releaseHolds(database, fromProtoReleaseRequest(request));
      return {};
    },
    async redeemConsoleLink({ code }) {
      if (code === "") throw DomainError.invalid([{ path: "code", message: "must be the code of a link" }]);
      const { expiresAt, ...keys } = await redeemConsoleLink(database, code);
      return { ...keys, expiresAt: timestampFromDate(expiresAt) };
    },
    async recordProviderTest({ operator, providerSlug, note }) {
      const issues = new FieldIssues();
      issues.checkName("operator", operator);
      issues.checkName("provider_slug", providerSlug);
      issues.checkName("note", note);
      issues.throwIfAny();
      await writeAudit(database, { operator, action: "provider.test", subject: providerSlug, note });
      return {};
    },
    async recordDestinationAction(request) {
      await recordDestinationAction(database, request);
      return {};
    },
  };
}

/** Writes into the audit what an operator does with a destination. Throws `record_unknown` and `invalid_body`. */
async function recordDestinationAction(
  database: InternalRpcOptions["database"],
  { operator, action, accountId, destinationId }: RecordDestinationActionRequest,
): Promise<void> {
  const issues = new FieldIssues();
  issues.checkName("operator", operator);
  issues.checkUuid("account_id", accountId);
  issues.checkUuid("destination_id", destinationId);
  const word = destinationActions.find((known) => known === action);
  if (word === undefined) issues.add("action", `must be one of ${destinationActions.join(", ")}`);
  issues.throwIfAny();
  await getAccount(database, accountId);
  const audited = `destination.${word ?? "test"}` as const;
  await writeAudit(database, { operator, action: audited, accountId, subject: destinationId });
}

/** Settles the events that can be settled and rejects the others, in their order. */
async function settle(
  options: InternalRpcOptions,
  events: readonly GenerationEvent[],
): Promise<SettleOutcome[]> {
  const oldestMs = options.clock.nowMs() - maxEventAgeMs(options.retentionDays);
  const bytes = new Map(events.map((event) => [event, bytesOfEvent(event)]));
  const bytesOf = (event: GenerationEvent) => bytes.get(event) ?? bytesOfEvent(event);
  const faults = events.map((event) => reportFault(event, oldestMs, bytesOf(event)));
  for (const [index, fault] of faults.entries()) {
    if (fault === undefined) continue;
    options.log.error({ generation_id: events[index]?.eventId.slice(0, 64), fault }, "an event was rejected");
  }
  const settled = await settleReported(
    options,
    events.filter((_, index) => faults[index] === undefined),
    bytesOf,
  );
  const results = settled.values();
  return faults.map((fault) => {
    if (fault !== undefined) return SettleOutcome.REJECTED;
    return settleOutcomes[results.next().value ?? "unknown"];
  });
}

/** A request that was lost comes by the topic alone, in its order: no process settles it. */
function reportFault(event: GenerationEvent, oldestMs: number, bytes: Uint8Array): string | undefined {
  return event.revision === 0 ? "a lost request can't be settled" : settlementFault(event, oldestMs, bytes);
}
