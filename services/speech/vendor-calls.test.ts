import { create, type JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ProviderPreferencesSchema } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import { builtInProviders } from "../../providers/manifests.ts";
import { planCall } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";

/** What an endpoint of the catalogue is asked for a request that asks for everything there is. */
async function planned(model: string, changes: Partial<SpeechRequest>, options: Record<string, JsonObject>) {
  const providerSlugs = builtInProviders.map(({ slug }) => slug);
  const catalog = await loadCatalog({ directories: [builtInCatalogDirectory], providerSlugs });
  const [endpoint] = catalog.speechModel(model)?.endpoints ?? [];
  if (endpoint === undefined) throw new Error(`nobody offers ${model}`);
  return planCall(endpoint, {
    input: "Hello.",
    model,
    voice: undefined,
    instructions: "Calm.",
    format: "mp3",
    speed: 3,
    preferences: create(ProviderPreferencesSchema, { options }),
    ...changes,
  });
}

test("a vendor without speed and instructions is sent neither, and both are named", async () => {
  const options = { mistral: { expressiveness: 2, ref_audio: "AAAA", speed: 2 } };
  const asked = { format: "pcm", voice: "alloy" } as const;
  const { call, ignoredParameters, transcode } = await planned(
    "mistralai/voxtral-mini-tts-3-0",
    asked,
    options,
  );
  expect(call).toMatchObject({ format: "wav", speed: 1, voice: "en_paul_neutral" });
  expect(call.options).toEqual({ expressiveness: 2 });
  expect(call.instructions).toBeUndefined();
  expect(ignoredParameters.toSorted()).toEqual([
    "instructions",
    "provider.options.mistral.ref_audio",
    "provider.options.mistral.speed",
    "speed",
  ]);
  expect(transcode).toBe(false);
});

test("a vendor with a narrower speed is sent the nearest", async () => {
  const options = { minimax: { voice_setting: { emotion: "happy" }, audio_setting: {}, timbre_weights: [] } };
  const { call, ignoredParameters } = await planned("minimax/speech-2.8-turbo", {}, options);
  expect(call).toMatchObject({ format: "mp3", speed: 2, voice: "English_expressive_narrator" });
  expect(call.options).toEqual({ voice_setting: { emotion: "happy" } });
  expect(ignoredParameters.toSorted()).toEqual([
    "instructions",
    "provider.options.minimax.audio_setting",
    "provider.options.minimax.timbre_weights",
  ]);
});
