import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type ImageModel, ImageModelSchema } from "../../gen/media/image/v1/image_pb.ts";
import { AudioFormat, type SpeechModel, SpeechModelSchema } from "../../gen/media/speech/v1/speech_pb.ts";
import { toModels } from "./list.ts";
import { toPriceLine, unitPriceUsd } from "./price-line.ts";

function speechModel(fields: MessageInitShape<typeof SpeechModelSchema>): SpeechModel {
  return create(SpeechModelSchema, fields);
}

function imageModel(fields: MessageInitShape<typeof ImageModelSchema>): ImageModel {
  return create(ImageModelSchema, fields);
}

test("prices of one unit are exact decimals", () => {
  expect(unitPriceUsd(0n)).toBe("0");
  expect(unitPriceUsd(1n)).toBe("0.000000000000001");
  expect(unitPriceUsd(15_000_000_000n)).toBe("0.000015");
  expect(unitPriceUsd(1_000_000_000_000n)).toBe("0.001");
  expect(unitPriceUsd(1_250_000_000_000_000n)).toBe("1.25");
  expect(unitPriceUsd(20_000_000_000_000_000n)).toBe("20");
  const price = { billable: "output_image", nanoUsdPerMillion: 40_000_000_000_000n };
  expect(toPriceLine({ ...price, variant: "high" }, "image")).toEqual({
    billable: "output_image",
    unit: "image",
    cost_usd: 0.04,
    variant: "high",
  });
  expect(toPriceLine({ ...price, variant: "" }, "image")).not.toHaveProperty("variant");
});

test("models of both media stand in one list, ordered by id", () => {
  const speech = [speechModel({ id: "b/two" }), speechModel({ id: "a/three" })];
  const list = toModels(speech, [imageModel({ id: "a/one" })], "/api/v1");
  expect(list.map(({ id }) => id)).toEqual(["a/one", "a/three", "b/two"]);
});

const speechEndpoint = {
  providerName: "Acme",
  providerSlug: "acme",
  formats: [AudioFormat.MP3, AudioFormat.PCM],
};

/** A model that two endpoints offer. */
const voice = speechModel({
  id: "acme/voice",
  permaslug: "acme/voice-2030-01-01",
  name: "Voice",
  description: "Speaks.",
  createdUnixS: 1_900_000_000n,
  voices: [{ id: "anna", name: "Anna", language: "en-US" }, { id: "bo" }],
  endpoints: [
    {
      ...speechEndpoint,
      maxInputCharacters: 4096,
      supportsSpeed: true,
      allowedPassthroughParameters: ["instructions"],
      prices: [
        { billable: "input_text_token", nanoUsdPerMillion: 600_000_000n },
        { billable: "output_audio_token", nanoUsdPerMillion: 12_000_000_000n },
      ],
    },
    { ...speechEndpoint, maxInputCharacters: 9000, prices: [{ billable: "request", nanoUsdPerMillion: 1n }] },
  ],
});

test("a speech model shows voices, formats, longest input and prices", () => {
  const [model] = toModels([voice], [], "/api/v1");
  expect(model).toMatchObject({
    id: "acme/voice",
    canonical_slug: "acme/voice-2030-01-01",
    name: "Voice",
    description: "Speaks.",
    created: 1_900_000_000,
    architecture: {
      modality: "text->speech",
      input_modalities: ["text"],
      output_modalities: ["speech"],
      tokenizer: "Media",
    },
    links: { details: "/api/v1/models/acme/voice/endpoints" },
    pricing: { prompt: "0.0000006", completion: "0.000012", request: "0", image: "0" },
    supported_parameters: ["voice", "response_format", "speed"],
    supported_voices: ["anna", "bo"],
    voices: [
      { id: "anna", name: "Anna", language: "en-US" },
      { id: "bo", name: null, language: null },
    ],
    default_voice: null,
    response_formats: ["mp3", "pcm"],
    max_input_characters: 9000,
    endpoints: [
      {
        max_input_characters: 4096,
        allowed_passthrough_parameters: ["instructions"],
        pricing: [
          { billable: "input_text_token", unit: "token", cost_usd: 6e-7 },
          { billable: "output_audio_token", unit: "token", cost_usd: 0.000012 },
        ],
      },
      { pricing: [{ billable: "request", unit: "request", cost_usd: 1e-15 }] },
    ],
  });
});

test.for([
  ["output_image", "image", { image: "0.04" }],
  ["output_image", "token", { completion: "0.04" }],
  ["input_text", "token", { prompt: "0.04" }],
  ["output_image", "request", { request: "0.04" }],
  ["output_image", "megapixel", {}],
] as const)("an image model's price for %s by the %s stands under %j", ([billable, unit, shown]) => {
  const prices = [{ billable, unit, nanoUsdPerMillion: 40_000_000_000_000n }];
  const [model] = toModels([], [imageModel({ id: "acme/brush", endpoints: [{ prices }] })], "/api/v1");
  expect(model?.pricing).toEqual({ prompt: "0", completion: "0", request: "0", image: "0", ...shown });
  expect(model?.endpoints).toMatchObject([{ pricing: [{ billable, unit, cost_usd: 0.04 }] }]);
});
