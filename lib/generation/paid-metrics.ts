import type { Metrics } from "../telemetry/metrics.ts";
import { watchPublisher } from "../telemetry/metrics-events.ts";
import type { OpenPaidRequests } from "./open-paid-requests.ts";

/** Tells how the events of a service's paid requests get to their homes. */
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
