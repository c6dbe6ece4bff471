import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { Bus } from "../events/bus.ts";
import type { SendQueueStats } from "../events/send-queue.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { AccountHolds, type AccountHoldsOptions } from "./account-holds.ts";
import { DurableEventStore } from "./durable-event-store.ts";
import { createOwnKeys, type OwnKeysOptions } from "./own-keys.ts";
import type { PaidRequests } from "./paid-request.ts";
import { RunningGenerations } from "./running-generations.ts";
import type { UsageDoubt } from "./usage-doubt.ts";

interface OpenPaidRequestsOptions {
  readonly account: AccountHoldsOptions["account"] & OwnKeysOptions["account"];
  readonly bus: Pick<Bus, "send" | "system">;
  /** Longest wait of an answer's end for its event to be safe, milliseconds. */
  readonly settleWaitMs: number;
  /** What a request costs that an own provider key serves, percent of its list price. */
  readonly byokFeePercent: number;
  readonly log: Log;
  readonly clock?: Clock;
  /** Is shown each event as it is stored, for metrics. */
  readonly onEvent?: ((event: GenerationEvent) => void) | undefined;
  /** Called with each reported usage that was not charged as it stands, for metrics. */
  readonly onUsageDoubt?: ((doubt: UsageDoubt) => void) | undefined;
  /** Where they are counted while they run; a count of their own unless given. */
  readonly running?: RunningGenerations;
}

/** The paid requests of a process, and how to end them. */
export interface OpenPaidRequests extends PaidRequests {
  readonly publisherFigures: SendQueueStats;
  /** Events that account has not answered for yet. */
  readonly unsettled: number;
  readonly running: RunningGenerations;
  /**
   * Waits until the events of ended requests are safe, for at most `timeoutMs`, and gives up the rest. What has not ended
   * by now leaves none, and is lost.
   */
  close(timeoutMs: number): Promise<void>;
}

/** Holds at account, events to the bus and to account. Both may be away when this is called. */
export function openPaidRequests(options: OpenPaidRequestsOptions): OpenPaidRequests {
  const { account, bus, settleWaitMs, byokFeePercent, log, clock = systemClock, onUsageDoubt } = options;
  const holds = new AccountHolds({ account, log });
  const { onEvent } = options;
  const eventStore = new DurableEventStore({ bus, holds, log, clock, waitMs: settleWaitMs, onEvent });
  const { running = new RunningGenerations() } = options;
  let closed = false;
  return {
    holds,
    eventStore: {
      get hasRoom() {
        return eventStore.hasRoom;
      },
      // What goes on when the process ends is cut by that: its outcome is not known, so it is lost.
      store: (event, span) => (closed ? Promise.resolve(false) : eventStore.store(event, span)),
    },
    clock,
    ownKeys: createOwnKeys({ account, clock }),
    byokFeePercent,
    running,
    onUsageDoubt,
    get publisherFigures() {
      return eventStore.publisherFigures;
    },
    get unsettled() {
      return eventStore.unsettled;
    },
    async close(timeoutMs) {
      closed = true;
      if (running.count > 0) log.warn({ count: running.count }, "generations are cut, and will be lost");
      await eventStore.flush(timeoutMs);
      eventStore.close();
      holds.close();
    },
  };
}
