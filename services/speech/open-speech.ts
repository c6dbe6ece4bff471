import type { ConfigOf } from "../../lib/runtime/config.ts";
import { type GeneratorParts, openGeneration } from "../../lib/service/open-generation.ts";
import type { Service, ServiceHost } from "../../lib/service/run-service.ts";
import type { paidSpec } from "../../lib/service/service-spec.ts";
import type { OpenProviders } from "../../providers/registry.ts";
import { synthesisLimits, type synthesisSpec } from "./config.ts";
import { createSpeechService } from "./speech-service.ts";

/** The speech service on what a process has. */
export async function openSpeech(
  host: ServiceHost,
  config: ConfigOf<typeof paidSpec & typeof synthesisSpec>,
  parts: GeneratorParts & OpenProviders,
): Promise<Service> {
  const generation = await openGeneration(host, config, parts.running);
  const limits = synthesisLimits(config);
  const { running } = generation;
  return { ...createSpeechService({ ...host, ...parts, ...generation, limits }), running };
}
