import { expect, test } from "vitest";
import { silentLog } from "../../lib/runtime/log.ts";
import { Metrics } from "../../lib/telemetry/metrics.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { parsePrometheusText, sumOf } from "../../test/support/prometheus-text.ts";
import { ProviderError } from "../contract.ts";
import { healthIdsOf } from "./candidate.ts";
import { EndpointHealth } from "./endpoint-health.ts";
import { watchBreakers } from "./upstream-metrics.ts";

test("an endpoint counts as left alone when all of the operator's keys rest there, or it does itself", async () => {
  const breaker = { failuresToOpen: 1, openMs: 60_000 };
  const health = new EndpointHealth({ clock: new ManualClock(), breaker });
  const metrics = new Metrics({ log: silentLog });
  const endpoints = ["keyed", "single"].map((id) => ({ id, providerSlug: id }));
  const providers = { operatorKeys: (slug: string) => (slug === "keyed" ? 2 : 1) };
  watchBreakers(metrics, [{ id: "acme/voice", endpoints }], { health, providers });
  const open = async () => {
    const series = parsePrometheusText(await metrics.scrape());
    return endpoints.map(({ id: endpoint }) => sumOf(series, "media_gateway_breaker_open", { endpoint }));
  };
  const limited = new ProviderError("overloaded", "limited", { status: 429 });

  await health.recordFailure(limited, ...healthIdsOf({ id: "keyed", operatorKey: 0 }));
  expect(await open()).toEqual([0, 0]);
  await health.recordFailure(limited, ...healthIdsOf({ id: "keyed", operatorKey: 1 }));
  expect(await open()).toEqual([1, 0]);
  await health.recordFailure(limited, ...healthIdsOf({ id: "single" }));
  expect(await open()).toEqual([1, 1]);
});
