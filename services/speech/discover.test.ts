import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AudioFormat, SpeechModelSchema } from "../../gen/media/speech/v1/speech_pb.ts";
import { systemClock } from "../../lib/runtime/clock.ts";
import type { SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import { builtInProviders } from "../../providers/manifests.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { catalogOf, speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { listSpeechModels } from "./discover.ts";

const unseen = { health: new EndpointHealth({ clock: systemClock }), providers: { operatorKeys: () => 1 } };

const listed = (...endpoints: SpeechEndpoint[]) =>
  listSpeechModels(catalogOf(...endpoints), unseen).map((model) => create(SpeechModelSchema, model));

test("a model is listed with all that the catalogue says of it", () => {
  const endpoint = speechEndpoint({
    passthrough: ["tone"],
    prices: [
      { billable: "input_character", nanoUsdPerMillion: 15_000_000_000n, mostPerInputCharacter: undefined },
      { billable: "output_audio_token", nanoUsdPerMillion: 3n, mostPerInputCharacter: 8n },
    ],
    speech: { voices: [{ id: "anna", name: "Anna", language: "en-US" }] },
  });
  const second = speechEndpoint({
    providerSlug: "zenith",
    speech: { speed: undefined, maxInputCharacters: 7, voices: [{ id: "zoe", name: "", language: "" }] },
  });
  expect(listed(endpoint, second)).toMatchObject([
    {
      id: "acme/voice",
      permaslug: "acme/voice-2030-01-01",
      name: "ACME/VOICE",
      description: "Speaks as acme/voice.",
      createdUnixS: 1_900_000_000n,
      voices: [{ id: "anna", name: "Anna", language: "en-US" }],
      defaultVoice: "anna",
      endpoints: [
        {
          endpointId: "endpoint-of-acme",
          providerSlug: "acme",
          providerName: "ACME",
          formats: [AudioFormat.MP3, AudioFormat.PCM],
          maxInputCharacters: 100,
          supportsSpeed: true,
          supportsInstructions: false,
          allowedPassthroughParameters: ["tone"],
          prices: [
            { billable: "input_character", nanoUsdPerMillion: 15_000_000_000n },
            { billable: "output_audio_token", nanoUsdPerMillion: 3n },
          ],
        },
        { endpointId: "endpoint-of-zenith", supportsSpeed: false, maxInputCharacters: 7 },
      ],
    },
  ]);
});

test.for([
  [
    ["mp3", "pcm"],
    [AudioFormat.MP3, AudioFormat.PCM],
  ],
  [
    ["pcm", "mp3"],
    [AudioFormat.MP3, AudioFormat.PCM],
  ],
  [["pcm"], [AudioFormat.MP3, AudioFormat.PCM]],
  [["mp3"], [AudioFormat.MP3]],
] as const)("an endpoint that gives %j offers %j", ([formats, offered]) => {
  expect(listed(speechEndpoint({ speech: { formats } }))[0]?.endpoints[0]?.formats).toEqual(offered);
});

test("a model that must be told a voice has no default, and one that takes any voice lists none", () => {
  const [model] = listed(speechEndpoint({ speech: { voices: [], defaultVoice: undefined } }));
  expect([model?.voices, model?.defaultVoice]).toEqual([[], ""]);
});

test("models are ordered by id", () => {
  const endpoints = ["b/b", "a/c", "a/b"].map((model) => speechEndpoint({ model }));
  expect(listed(...endpoints).map(({ id }) => id)).toEqual(["a/b", "a/c", "b/b"]);
});

test("everything of the catalogue that comes along can be listed", async () => {
  const catalog = await loadCatalog({
    directories: [builtInCatalogDirectory],
    providerSlugs: builtInProviders.map(({ slug }) => slug),
  });
  const models = listSpeechModels(catalog, unseen).map((model) => create(SpeechModelSchema, model));
  expect(models.map(({ id }) => id)).toEqual(catalog.speechModels().map(({ id }) => id));
  for (const model of models) {
    expect(model.endpoints.length, model.id).toBeGreaterThan(0);
    for (const { formats, prices } of model.endpoints) {
      expect(formats.length * prices.length, model.id).toBeGreaterThan(0);
      expect(formats, model.id).toContain(AudioFormat.MP3);
    }
  }
});
