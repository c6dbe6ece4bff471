import type { JsonObject } from "@bufbuild/protobuf";
import { DeliveryError, type DestinationType } from "./contract.ts";
import { grafana } from "./grafana/index.ts";
import { langfuse } from "./langfuse/index.ts";
import { otelCollector } from "./otel-collector/index.ts";
import { s3 } from "./s3/index.ts";
import { webhook } from "./webhook/index.ts";

/** The types that are built in, by slug. A new one is a folder and a line here. */
export const destinationTypes: ReadonlyMap<string, DestinationType<unknown>> = bySlug([
  withoutConfigType(webhook),
  withoutConfigType(otelCollector),
  withoutConfigType(langfuse),
  withoutConfigType(grafana),
  withoutConfigType(s3),
]);

function bySlug(types: readonly DestinationType<unknown>[]): ReadonlyMap<string, DestinationType<unknown>> {
  return new Map(types.map((type) => [type.slug, type]));
}

/**
 * A type without its type parameter. Settings are read again at each use, so that those of another type, or
 * stored ones that are no longer valid, are refused: by `deliver` and `test` with DeliveryError, by `urlsOf` with
 * TypeError.
 */
function withoutConfigType<C>(type: DestinationType<C>): DestinationType<unknown> {
  const tryRestore = (config: unknown): C | undefined => {
    if (typeof config !== "object" || config === null) return undefined;
    const read = type.readConfig(config as JsonObject);
    return "config" in read ? read.config : undefined;
  };
  const restore = (config: unknown): C => {
    const known = tryRestore(config);
    if (known === undefined) throw new DeliveryError("the settings are not valid any more");
    return known;
  };
  return {
    slug: type.slug,
    secrets: type.secrets,
    maxBatchEvents: type.maxBatchEvents,
    readConfig: (config) => type.readConfig(config),
    urlsOf(config) {
      const known = tryRestore(config);
      if (known === undefined) throw new TypeError(`no settings of ${type.slug}`);
      return type.urlsOf(known);
    },
    deliver: async (batch, config, context) => type.deliver(batch, restore(config), context),
    test: async (config, context) => type.test(restore(config), context),
  };
}
