import { createGuardedFetch } from "../../lib/http/guarded-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import type { ConfigOf } from "../../lib/runtime/config.ts";
import { type GeneratorParts, openGeneration } from "../../lib/service/open-generation.ts";
import type { Service, ServiceHost } from "../../lib/service/run-service.ts";
import type { paidSpec } from "../../lib/service/service-spec.ts";
import type { OpenProviders } from "../../providers/registry.ts";
import { generationSettings, type generationSpec } from "./config.ts";
import { createImageService } from "./image-service.ts";

/** The image service on what a process has. */
export async function openImage(
  host: ServiceHost,
  config: ConfigOf<typeof paidSpec & typeof generationSpec>,
  parts: GeneratorParts & OpenProviders,
): Promise<Service> {
  const guard = createAddressGuard({ allowedCidrs: config.REFERENCE_ALLOWED_CIDRS });
  const fetchReference = createGuardedFetch({ guard });
  host.onStop(() => fetchReference.close());
  const generation = await openGeneration(host, config, parts.running);
  const settings = generationSettings(config);
  const { running } = generation;
  return {
    ...createImageService({ ...host, ...parts, ...generation, ...settings, fetchReference }),
    running,
  };
}
