import { expect, test } from "vitest";
import { silentLog } from "../../../lib/runtime/log.ts";
import { Metrics } from "../../../lib/telemetry/metrics.ts";
import { parsePrometheusText } from "../../../test/support/prometheus-text.ts";
import { type DeliveryTotals, watchDeliveries } from "./delivery-metrics.ts";

const totals: DeliveryTotals = {
  inFlight: 1,
  deliveredBatches: 2,
  deliveredEvents: 3,
  failedAttempts: 4,
  repeatedBatches: 5,
  pauses: 6,
  givenUpEvents: 7,
  enabledDestinations: 8,
  failingDestinations: 9,
  pausedDestinations: 10,
  pendingEvents: 11,
  oldestPendingMs: 12_500,
  oldestHealthyPendingMs: 250,
};

async function observed(read: () => Promise<DeliveryTotals>) {
  const metrics = new Metrics({ log: silentLog });
  watchDeliveries(metrics, { consumer: undefined, deliveryTotals: read }, silentLog);
  const series = parsePrometheusText(await metrics.scrape());
  return Object.fromEntries(series.map(({ name, value }) => [name.replace("media_gateway_", ""), value]));
}

test("every total of deliveries is observed, times in seconds", async () => {
  expect(await observed(async () => totals)).toEqual({
    deliveries_in_flight: 1,
    deliveries_delivered_total: 2,
    deliveries_events_total: 3,
    deliveries_failed_total: 4,
    deliveries_repeated_total: 5,
    destination_pauses_total: 6,
    deliveries_given_up_events_total: 7,
    destinations_enabled: 8,
    destinations_failing: 9,
    destinations_paused: 10,
    deliveries_pending_events: 11,
    deliveries_oldest_pending_seconds: 12.5,
    deliveries_oldest_healthy_pending_seconds: 0.25,
  });
});

test("with the database away nothing is observed, and nothing fails", async () => {
  expect(await observed(() => Promise.reject(new Error("away")))).toEqual({});
});
