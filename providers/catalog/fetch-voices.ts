import type { Log } from "../../lib/runtime/log.ts";
import { type Repeating, repeat } from "../../lib/runtime/repeat.ts";
import type { ListedVoice } from "../contract.ts";
import type { Catalog, SpeechEndpoint } from "./catalog.ts";

/** Asks a provider for the voices of one of its models. Undefined: it is off. Throws ProviderError. */
export type AskForVoices = (
  providerSlug: string,
  upstreamModel: string,
  signal: AbortSignal,
) => Promise<readonly ListedVoice[] | undefined>;

const refreshMs = 5 * 60_000;
const timeoutMs = 10_000;

/**
 * Begins to keep the voices of a catalogue that upstreams list themselves: now and then each is asked. One that fails, or
 * lists none, keeps the voices that it had.
 */
export function keepVoices(
  catalog: Catalog,
  ask: AskForVoices,
  log: Log,
  everyMs = refreshMs,
): readonly Repeating[] {
  const endpoints = catalog.speechModels().flatMap((model) => model.endpoints);
  return endpoints.flatMap((endpoint) => {
    const { fetchedVoices } = endpoint.speech;
    if (fetchedVoices === undefined) return [];
    const run = async (signal: AbortSignal) => {
      const voices = await askOne(endpoint, ask, signal);
      if (voices.length > 0) fetchedVoices.current = voices.map((voice) => ({ ...voice, language: "" }));
      return false;
    };
    return repeat({ name: `list voices of ${endpoint.providerSlug}`, run, pauseMs: everyMs, log });
  });
}

async function askOne(
  { providerSlug, upstreamModel }: SpeechEndpoint,
  ask: AskForVoices,
  signal: AbortSignal,
): Promise<readonly ListedVoice[]> {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return (await ask(providerSlug, upstreamModel, inTime)) ?? [];
}
