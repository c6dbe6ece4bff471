import { create } from "@bufbuild/protobuf";
import { ImageModelSchema, type ParameterCapability } from "../../gen/media/image/v1/image_pb.ts";
import { AudioFormat, SpeechModelSchema } from "../../gen/media/speech/v1/speech_pb.ts";

const supportedParameters = [
  { name: "aspect_ratio", capability: { case: "enumValues", value: { values: ["1:1", "16:9"] } } },
  { name: "n", capability: { case: "range", value: { min: 1, max: 10 } } },
  { name: "seed", capability: { case: "boolean", value: true } },
  { name: "quality", capability: { case: "boolean", value: false } },
] as ParameterCapability[];

/** A speech model as the speech service lists it. */
export const speechModelFixture = create(SpeechModelSchema, {
  id: "acme/voice",
  permaslug: "acme/voice-2030-01-01",
  name: "Voice",
  description: "Speaks.",
  createdUnixS: 1_900_000_000n,
  voices: [{ id: "anna", name: "Anna", language: "en-US" }, { id: "bo" }],
  defaultVoice: "anna",
  endpoints: [
    {
      endpointId: "0f9d1b6e-3a52-4c7b-9c52-5a6f0d6f7a10",
      providerSlug: "acme",
      providerName: "Acme",
      formats: [AudioFormat.MP3, AudioFormat.PCM],
      maxInputCharacters: 4096,
      supportsSpeed: true,
      prices: [{ billable: "input_character", nanoUsdPerMillion: 15_000_000_000n }],
    },
  ],
});

/** An image model as the image service lists it. */
export const imageModelFixture = create(ImageModelSchema, {
  id: "acme/brush",
  permaslug: "acme/brush-2030-01-01",
  name: "Brush",
  description: "Draws.",
  createdUnixS: 1_900_000_000n,
  inputModalities: ["text", "image"],
  outputModalities: ["image"],
  supportedParameters,
  supportsStreaming: true,
  endpoints: [
    {
      endpointId: "5e0c3cf0-43f4-4a5e-8c0b-2b6a3a2f6d11",
      providerSlug: "acme",
      providerName: "Acme",
      supportedParameters,
      allowedPassthroughParameters: ["style"],
      supportsStreaming: true,
      prices: [
        { billable: "output_image", unit: "image", nanoUsdPerMillion: 40_000_000_000_000n, variant: "high" },
        { billable: "input_text", unit: "token", nanoUsdPerMillion: 5_000_000_000n },
      ],
    },
  ],
});
