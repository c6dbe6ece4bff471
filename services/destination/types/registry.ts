import type { DestinationType } from "./contract.ts";
import { grafana } from "./grafana/index.ts";
import { langfuse } from "./langfuse/index.ts";
import { otelCollector } from "./otel-collector/index.ts";
import { s3 } from "./s3/index.ts";
import { webhook } from "./webhook/index.ts";

const types: readonly DestinationType<unknown>[] = [webhook, otelCollector, langfuse, grafana, s3];

/**
 * The types that are built in, by slug. A new one is a folder and a word here. Whoever calls one hands it settings that
 * its own `readConfig` has read.
 */
export const destinationTypes: ReadonlyMap<string, DestinationType<unknown>> = new Map(
  types.map((type) => [type.slug, type]),
);
