import type { Log } from "../../../lib/runtime/log.ts";
import type { Metrics } from "../../../lib/telemetry/metrics.ts";
import { cachedRead } from "../../../lib/telemetry/metrics-cache.ts";
import type { MoneyCounters, MoneyTotals } from "./money-totals.ts";

/** What is observed. `moneyTotals` may reject: the database is away. */
interface MoneySource {
  readonly moneyCounters: Readonly<MoneyCounters>;
  moneyTotals(): Promise<MoneyTotals>;
}

const nanoUsdPerUsd = 1e9;

const counters: Readonly<Record<keyof MoneyCounters, readonly [name: string, help: string]>> = {
  overRunNanoUsd: ["over_run_usd_total", "What requests cost beyond their holds, US dollars."],
  lateRealNanoUsd: [
    "late_real_usd_total",
    "What requests cost whose holds had been freed as lost, US dollars.",
  ],
  unknownHolds: ["unknown_holds_total", "Events that no hold was found for: nothing was debited."],
  closedHoldEvents: [
    "closed_hold_events_total",
    "Events for holds that were refused or released, which should never be.",
  ],
  publishedLost: ["published_lost_total", "Lost events put on the topic by account, repeats included."],
  publishedUnseen: [
    "published_unseen_total",
    "Settled events put on the topic by account because they were not met there, repeats included.",
  ],
  unpublishable: ["unpublishable_total", "Events of holds that the topic does not take."],
  prunedHolds: ["pruned_holds_total", "Holds forgotten, their time being over."],
};

/** Exports the counters of this process, and the holds of the database, which are the same in all replicas. */
export function watchMoney(metrics: Metrics, source: MoneySource, log: Log): void {
  for (const [field, [name, help]] of Object.entries(counters)) {
    const read = () => {
      const value = source.moneyCounters[field as keyof MoneyCounters];
      return typeof value === "bigint" ? Number(value) / nanoUsdPerUsd : value;
    };
    metrics.observe({ name: `media_gateway_money_${name}`, help, kind: "counter", read });
  }
  const totals = cachedRead(() => source.moneyTotals(), { name: "holds", log });
  const gauge = (name: string, help: string, value: (now: MoneyTotals) => number) =>
    metrics.observe({
      name: `media_gateway_holds_${name}`,
      help,
      kind: "gauge",
      read: async () => {
        const now = await totals();
        return now === undefined ? undefined : value(now);
      },
    });
  gauge("open", "Holds of requests that have not ended.", ({ openHolds }) => openHolds);
  gauge(
    "overdue",
    "Open holds that are past their deadline and grace: of requests that were lost.",
    ({ overdueHolds }) => overdueHolds,
  );
  gauge(
    "unseen",
    "Settled holds whose event was not met on the topic yet.",
    ({ unseenHolds }) => unseenHolds,
  );
  gauge(
    "unseen_oldest_seconds",
    "How long ago the oldest of those was settled, seconds; 0 without one.",
    ({ oldestUnseenS }) => oldestUnseenS,
  );
}
