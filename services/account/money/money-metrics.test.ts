import { expect, test } from "vitest";
import { silentLog } from "../../../lib/runtime/log.ts";
import { Metrics } from "../../../lib/telemetry/metrics.ts";
import { parsePrometheusText } from "../../../test/support/prometheus-text.ts";
import { watchMoney } from "./money-metrics.ts";
import { createMoneyCounters, type MoneyTotals } from "./money-totals.ts";

async function observed(moneyTotals: () => Promise<MoneyTotals>, counters = createMoneyCounters()) {
  const metrics = new Metrics({ log: silentLog });
  watchMoney(metrics, { moneyCounters: counters, moneyTotals }, silentLog);
  const series = parsePrometheusText(await metrics.scrape());
  return Object.fromEntries(series.map(({ name, value }) => [name.replace("media_gateway_", ""), value]));
}

const holds = { openHolds: 4, overdueHolds: 3, unseenHolds: 2, oldestUnseenS: 61.5 };

test("every counter is observed, amounts in US dollars, and the holds", async () => {
  const counters = createMoneyCounters();
  counters.overRunNanoUsd = 1_500_000_000n;
  counters.lateRealNanoUsd = 2_000n;
  counters.unknownHolds = 1;
  counters.closedHoldEvents = 2;
  counters.publishedLost = 3;
  counters.publishedUnseen = 4;
  counters.unpublishable = 5;
  counters.prunedHolds = 6;
  expect(await observed(async () => ({ ...counters, ...holds }), counters)).toEqual({
    money_over_run_usd_total: 1.5,
    money_late_real_usd_total: 0.000002,
    money_unknown_holds_total: 1,
    money_closed_hold_events_total: 2,
    money_published_lost_total: 3,
    money_published_unseen_total: 4,
    money_unpublishable_total: 5,
    money_pruned_holds_total: 6,
    holds_open: 4,
    holds_overdue: 3,
    holds_unseen: 2,
    holds_unseen_oldest_seconds: 61.5,
  });
});

test("with the database away the counters are observed all the same, and no holds", async () => {
  const names = Object.keys(await observed(() => Promise.reject(new Error("away"))));
  expect(names).toHaveLength(8);
  expect(names.filter((name) => name.startsWith("holds_"))).toEqual([]);
});
