import { create } from "@bufbuild/protobuf";
import {
  PrincipalSchema,
  type Reservation,
  ReservationOutcome,
} from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind } from "../../gen/media/account/v1/key_pb.ts";
import type { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { ReleasedHold } from "../../lib/generation/account-holds.ts";
import type { Attribution } from "../../lib/generation/generation-event.ts";
import type { PaidRequests } from "../../lib/generation/paid-request.ts";
import { RunningGenerations } from "../../lib/generation/running-generations.ts";
import type { UsageDoubt } from "../../lib/generation/usage-doubt.ts";
import { type Clock, systemClock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";

/** Paid requests that ask nobody: what they would have sent to account and the bus is kept. */
export class FakePaidRequests implements PaidRequests {
  readonly clock: Clock;
  readonly reservations: Reservation[] = [];
  readonly events: GenerationEvent[] = [];
  readonly released: ReleasedHold[] = [];
  /** What the next reservations are answered. */
  outcome: ReservationOutcome | Error = ReservationOutcome.GRANTED;
  /** What the next reservations wait for. */
  reserved: Promise<void> = Promise.resolve();
  /** What storing an event waits for. */
  stored: Promise<boolean> = Promise.resolve(true);
  hasRoom = true;
  /** The accounts' own keys, by provider. */
  readonly ownKeysBySlug = new Map<string, string>();
  readonly byokFeePercent = 5;
  readonly running = new RunningGenerations();
  readonly doubts: UsageDoubt[] = [];
  readonly onUsageDoubt = (doubt: UsageDoubt) => void this.doubts.push(doubt);

  readonly ownKeys: PaidRequests["ownKeys"] = async (_accountId, slugs) =>
    new Map([...this.ownKeysBySlug].filter(([slug]) => slugs.includes(slug)));

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
  }

  readonly holds: PaidRequests["holds"] = {
    reserve: async (reservation) => {
      this.reservations.push(reservation);
      await this.reserved;
      if (this.outcome instanceof Error) throw this.outcome;
      return this.outcome;
    },
    release: (hold) => {
      this.released.push(hold);
    },
  };

  get eventStore(): PaidRequests["eventStore"] {
    return {
      hasRoom: this.hasRoom,
      store: (event) => {
        this.events.push(event);
        return this.stored;
      },
    };
  }

  /** The only event. */
  event(): GenerationEvent {
    const [event, ...others] = this.events;
    if (event === undefined || others.length > 0) throw new Error(`${this.events.length} events`);
    return event;
  }
}

/** The reason that frames end with, in place of their end. */
export async function failureOf(frames: AsyncIterable<unknown>): Promise<ErrorReason> {
  const thrown = await Array.fromAsync(frames).catch((error: unknown) => error);
  if (thrown instanceof DomainError) return thrown.reason;
  throw new Error("did not fail as it should", { cause: thrown });
}

/** Somebody who asks for a generation. */
export const someAttribution: Attribution = {
  principal: create(PrincipalSchema, {
    accountId: "00000000-0000-4000-8000-000000000001",
    keyHash: "ab".repeat(32),
    keyName: "a key",
    keyKind: KeyKind.INFERENCE,
  }),
  requestId: "req-1",
  user: "",
  sessionId: "",
  trace: undefined,
};
