import type { EventConsumer } from "../../../lib/events/batch-consumer.ts";
import { watchConsumer } from "../../../lib/events/event-metrics.ts";
import { groups } from "../../../lib/events/topics.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import type { Metrics, ObservedMetric } from "../../../lib/telemetry/metrics.ts";
import { cachedRead } from "../../../lib/telemetry/metrics-cache.ts";
import type { DeliveryBacklog } from "./backlog.ts";
import type { DeliveryCounters } from "./deliveries.ts";
import type { Housekeeping } from "./housekeeping.ts";

/** What this process has counted since it started, and what stands in the database, the same in all replicas. */
export type DeliveryTotals = DeliveryCounters & Pick<Housekeeping, "givenUpEvents"> & DeliveryBacklog;

/** What is observed. `deliveryTotals` may reject: the database is away. */
interface DeliverySource {
  readonly consumer: EventConsumer | undefined;
  deliveryTotals(): Promise<DeliveryTotals>;
}

type Metric = readonly [name: string, kind: ObservedMetric["kind"], help: string, unit?: number];

const perSecond = 1000;

const metricsOf: Readonly<Record<keyof DeliveryTotals, Metric>> = {
  inFlight: ["deliveries_in_flight", "gauge", "Attempts at receivers that are under way."],
  deliveredBatches: ["deliveries_delivered_total", "counter", "Attempts that receivers took."],
  deliveredEvents: ["deliveries_events_total", "counter", "Events in what receivers took."],
  failedAttempts: ["deliveries_failed_total", "counter", "Attempts that receivers did not take."],
  repeatedBatches: [
    "deliveries_repeated_total",
    "counter",
    "Batches that went out again because their outcome could not be kept.",
  ],
  pauses: ["destination_pauses_total", "counter", "Destinations paused after sustained failure."],
  givenUpEvents: [
    "deliveries_given_up_events_total",
    "counter",
    "Events given up after they had waited for a day.",
  ],
  enabledDestinations: ["destinations_enabled", "gauge", "Destinations that are delivered to."],
  failingDestinations: [
    "destinations_failing",
    "gauge",
    "Enabled destinations whose last attempt failed, without the paused ones.",
  ],
  pausedDestinations: [
    "destinations_paused",
    "gauge",
    "Enabled destinations that are paused after sustained failure.",
  ],
  pendingEvents: [
    "deliveries_pending_events",
    "gauge",
    "Events that wait, counted for each destination, up to a million.",
  ],
  oldestPendingMs: [
    "deliveries_oldest_pending_seconds",
    "gauge",
    "How long the oldest event waits that may be delivered, seconds; 0 without one.",
    perSecond,
  ],
  oldestHealthyPendingMs: [
    "deliveries_oldest_healthy_pending_seconds",
    "gauge",
    "The same of destinations whose last attempt worked: how far delivery itself is behind, seconds.",
    perSecond,
  ],
};

/** Exports how events are consumed and delivered. What is not of this process is the same in all replicas. */
export function watchDeliveries(metrics: Metrics, source: DeliverySource, log: Log): void {
  watchConsumer(metrics, groups.destination, () => source.consumer);
  const totals = cachedRead(() => source.deliveryTotals(), { name: "deliveries", log });
  for (const [field, [name, kind, help, unit = 1]] of Object.entries(metricsOf)) {
    const read = async () => {
      const now = await totals();
      return now === undefined ? undefined : now[field as keyof DeliveryTotals] / unit;
    };
    metrics.observe({ name: `media_gateway_${name}`, help, kind, read });
  }
}
