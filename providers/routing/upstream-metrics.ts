import type { Metrics } from "../../lib/telemetry/metrics.ts";
import type { Endpoint, Model } from "../catalog/catalog.ts";
import type { EnginePool } from "../contract.ts";
import { type HealthSources, seenHealth } from "./seen-health.ts";

/** A model and who is to be asked for it. */
type OfferedModel = Pick<Model, "id"> & {
  readonly endpoints: readonly Pick<Endpoint, "id" | "providerSlug">[];
};

/** Where the counts of engines come from: a ProviderSet. */
interface EngineSource {
  enginePools(): readonly (EnginePool & { readonly provider: string })[];
}

/** Exports of each endpoint whether its breaker is open, or those of all its keys. What accounts' own keys meet is not exported. */
export function watchBreakers(
  metrics: Metrics,
  models: readonly OfferedModel[],
  sources: HealthSources,
): void {
  metrics.observe({
    name: "media_gateway_breaker_open",
    help: "1 while an endpoint is left alone after failures in a row, else 0.",
    kind: "gauge",
    read: () =>
      models.flatMap(({ id: model, endpoints }) =>
        endpoints.map((endpoint) => ({
          value: seenHealth(endpoint, sources).breakerOpen ? 1 : 0,
          labels: { model, provider: endpoint.providerSlug, endpoint: endpoint.id },
        })),
      ),
  });
}

/** Exports how busy the engines in this process are, once they have been used. */
export function watchEngines(metrics: Metrics, providers: EngineSource): void {
  metrics.observe({
    name: "media_gateway_engine_tasks",
    help: "Tasks of engines in this process, by pool of threads and by whether they have a thread.",
    kind: "gauge",
    read: () =>
      providers.enginePools().flatMap(({ provider, name: pool, running, waiting }) => [
        { value: running, labels: { provider, pool, state: "running" } },
        { value: waiting, labels: { provider, pool, state: "waiting" } },
      ]),
  });
  metrics.observe({
    name: "media_gateway_engine_tasks_completed_total",
    help: "Tasks that engines in this process have done.",
    kind: "counter",
    read: () =>
      providers
        .enginePools()
        .map(({ provider, name: pool, completed }) => ({ value: completed, labels: { provider, pool } })),
  });
}
