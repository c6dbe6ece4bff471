import type { Metrics } from "../telemetry/metrics.ts";
import { watchPublisher } from "../telemetry/metrics-events.ts";
import type { OpenPaidRequests } from "./open-paid-requests.ts";
import { type UsageDoubt, usageDoubtKinds } from "./usage-doubt.ts";

/** Tells how the events of a service's paid requests become durable. */
export function watchPaidRequests(
  metrics: Metrics,
  service: string,
  paid: Pick<OpenPaidRequests, "publisherFigures" | "unsettled">,
): void {
  watchPublisher(metrics, service, () => paid.publisherFigures);
  metrics.observe({
    name: "media_gateway_unsettled_events",
    help: "Events that account has not answered for yet.",
    kind: "gauge",
    read: () => [{ value: paid.unsettled, labels: { service } }],
  });
}

/** Counts the reports of used tokens that were not charged as they stand. */
export function measureUsageDoubts(metrics: Metrics): (doubt: UsageDoubt) => void {
  const doubts = metrics.counter(
    "media_gateway_usage_doubts_total",
    "Generations whose reported usage was not charged as it stands, by why: missing, invalid, zero, above_bound, beyond_reason.",
  );
  for (const doubt of usageDoubtKinds) doubts.add(0, { doubt });
  return ({ kind }) => doubts.add(1, { doubt: kind });
}
