import type { Metrics, ObservedMetric, Reading } from "../telemetry/metrics.ts";
import type { EventConsumer } from "./batch-consumer.ts";
import type { SendQueueStats } from "./send-queue.ts";

type PublisherMetric = readonly [
  kind: ObservedMetric["kind"],
  name: string,
  help: string,
  read: (now: SendQueueStats) => number,
];

const publisherMetrics: readonly PublisherMetric[] = [
  ["gauge", "pending", "Events that wait for the bus or are under way to it.", ({ pending }) => pending],
  ["gauge", "pending_bytes", "Bytes of those events.", ({ pendingBytes }) => pendingBytes],
  [
    "gauge",
    "oldest_seconds",
    "How long the oldest of those events has waited, seconds.",
    ({ oldestMs }) => oldestMs / 1000,
  ],
  ["counter", "published_total", "Events that the bus has taken.", ({ published }) => published],
  [
    "counter",
    "failures_total",
    "Sends to the bus that failed and were repeated.",
    ({ failures }) => failures,
  ],
  ["counter", "quarantined_total", "Events that the bus will never take.", ({ quarantined }) => quarantined],
  [
    "counter",
    "let_go_total",
    "Events that account has and that were not sent because too many waited.",
    ({ evicted }) => evicted,
  ],
];

/** Exports how the events of a service, such as `speech`, get onto the bus. */
export function watchPublisher(metrics: Metrics, service: string, stats: () => SendQueueStats): void {
  for (const [kind, name, help, read] of publisherMetrics) {
    metrics.observe({
      name: `media_gateway_publisher_${name}`,
      help,
      kind,
      read: () => [{ value: read(stats()), labels: { service } }],
    });
  }
}

/** Exports how a group takes in events; nothing before the consumer has begun. */
export function watchConsumer(
  metrics: Metrics,
  group: string,
  consumer: () => EventConsumer | undefined,
): void {
  const labels = { group };
  const observe = (
    kind: ObservedMetric["kind"],
    name: string,
    help: string,
    read: (now: EventConsumer) => number | undefined,
  ) => {
    const readAll = (): readonly Reading[] => {
      const now = consumer();
      const value = now === undefined ? undefined : read(now);
      return value === undefined ? [] : [{ value, labels }];
    };
    metrics.observe({ name, help, kind, read: readAll });
  };
  observe(
    "gauge",
    "media_gateway_consumer_lag",
    "Messages that wait in the partitions of this member of the group; left out while it is not known.",
    ({ lag }) => lag,
  );
  observe(
    "gauge",
    "media_gateway_consumer_connected",
    "1 while this member of the group hears from the bus, else 0.",
    ({ connected }) => (connected ? 1 : 0),
  );
  observe(
    "counter",
    "media_gateway_consumer_applied_total",
    "Events that were stored; copies count again.",
    ({ applied }) => applied,
  );
  observe(
    "counter",
    "media_gateway_consumer_dead_letters_total",
    "Events that could not be applied and were put onto the dead-letter topic.",
    ({ deadLettered }) => deadLettered,
  );
}
