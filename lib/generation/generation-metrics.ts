import {
  type Api,
  ApiSchema,
  type GenerationEvent,
  type Outcome,
  OutcomeSchema,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import { watchPublisher } from "../events/event-metrics.ts";
import { type Metrics, requestSeconds } from "../telemetry/metrics.ts";
import type { DurableEventStore } from "./durable-event-store.ts";
import { type UsageDoubt, usageDoubtKinds } from "./usage-doubt.ts";

const nanoUsdPerUsd = 1e9;

/**
 * Counts generations and their attempts from the events that they leave. The labels of an event are the catalogue's
 * own words, closed sets: nothing that a caller wrote.
 */
export function measureGenerations(metrics: Metrics): (event: GenerationEvent) => void {
  const generations = metrics.counter(
    "media_gateway_generations_total",
    "Requests that reached an upstream, by what came of them.",
  );
  const cost = metrics.counter(
    "media_gateway_generation_cost_usd_total",
    "What those requests cost their accounts, US dollars.",
  );
  const attempts = metrics.counter(
    "media_gateway_upstream_attempts_total",
    "Attempts at upstream endpoints, by outcome and reason; byok: with an account's own key.",
  );
  const firstOutput = metrics.histogram(
    "media_gateway_upstream_first_output_seconds",
    "From sending an attempt to its first output, seconds.",
    requestSeconds,
  );
  return (event) => {
    const api = wordOfApi(event.api);
    generations.add(1, { api, outcome: wordOfOutcome(event.outcome) });
    if (event.costNanoUsd > 0n) cost.add(Number(event.costNanoUsd) / nanoUsdPerUsd, { api });
    for (const { providerSlug, endpointId, byok, outcome, reason, firstByteMs } of event.attempts) {
      const endpoint = { provider: providerSlug, endpoint: endpointId };
      attempts.add(1, { ...endpoint, byok: String(byok), outcome: wordOfOutcome(outcome), reason });
      if (firstByteMs !== undefined) firstOutput.record(Number(firstByteMs) / 1000, endpoint);
    }
  };
}

function wordOfApi(api: Api): string {
  return (ApiSchema.value[api]?.localName ?? "UNSPECIFIED").toLowerCase();
}

function wordOfOutcome(outcome: Outcome): string {
  return (OutcomeSchema.value[outcome]?.localName ?? "UNSPECIFIED").toLowerCase();
}

/** Tells how the events of a service become durable. */
export function watchEventStore(metrics: Metrics, service: string, store: DurableEventStore): void {
  watchPublisher(metrics, service, () => store.publisherFigures);
  metrics.observe({
    name: "media_gateway_unsettled_events",
    help: "Events that account has not answered for yet.",
    kind: "gauge",
    read: () => [{ value: store.unsettled, labels: { service } }],
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
