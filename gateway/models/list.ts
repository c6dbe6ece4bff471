import Type, { type Static } from "typebox";
import type { ImageModel } from "../../gen/media/image/v1/image_pb.ts";
import { AudioFormat, type SpeechEndpoint, type SpeechModel } from "../../gen/media/speech/v1/speech_pb.ts";
import { stringEnum } from "../schema/field-schemas.ts";
import {
  type CataloguePrice,
  type PriceLine,
  priceLineSchema,
  toPriceLine,
  unitPriceUsd,
} from "./price-line.ts";

const nullable = (description: string) => Type.Null({ description });

const speechEndpointSchema = Type.Object({
  provider_name: Type.String(),
  provider_slug: Type.String(),
  response_formats: Type.Array(stringEnum(["mp3", "pcm"])),
  max_input_characters: Type.Integer({ minimum: 0, description: "Longest input, Unicode code points." }),
  supports_speed: Type.Boolean(),
  supports_instructions: Type.Boolean(),
  allowed_passthrough_parameters: Type.Array(Type.String()),
  pricing: Type.Array(priceLineSchema),
});

const imageEndpointSchema = Type.Object({
  provider_name: Type.String(),
  provider_slug: Type.String(),
  pricing: Type.Array(priceLineSchema),
});

const voiceSchema = Type.Object({
  id: Type.String({ description: "What to put in `voice`." }),
  name: Type.Union([Type.String(), Type.Null()]),
  language: Type.Union([Type.String(), Type.Null()], { description: "BCP 47; null: many, or not known." }),
});

const unitPrice = (description: string) => Type.String({ pattern: "^[0-9]+(\\.[0-9]+)?$", description });

/** What goes into a model and comes out of it. */
export const architectureSchema = Type.Object({
  modality: Type.String({ description: "Such as `text->speech`." }),
  input_modalities: Type.Array(Type.String()),
  output_modalities: Type.Array(Type.String()),
  tokenizer: stringEnum(["Media"], { description: "These models have none of their own." }),
  instruct_type: nullable("These models have none."),
});

/** Prices under the names that lists of text models use. */
export const pricingSchema = Type.Object(
  {
    prompt: unitPrice("An input token, or an input character where those are billed."),
    completion: unitPrice("An output token."),
    request: unitPrice("A request."),
    image: unitPrice("An output image."),
  },
  {
    description: "USD at the preferred endpoint, 0 where it does not bill so; `endpoints` has it exactly.",
  },
);

/** What models of both media show; the fields that say null are there for clients that read lists of text models. */
const modelFields = {
  id: Type.String({ description: "What to put in `model`." }),
  object: stringEnum(["model"]),
  owned_by: Type.String({ description: "What stands before the slash in its id." }),
  canonical_slug: Type.String({ description: "The dated name of the exact model." }),
  name: Type.String(),
  description: Type.String(),
  created: Type.Integer({ description: "Unix seconds." }),
  context_length: nullable("These models have none."),
  architecture: architectureSchema,
  pricing: pricingSchema,
  top_provider: Type.Object({
    context_length: nullable("These models have none."),
    max_completion_tokens: nullable("These models have none."),
    is_moderated: Type.Boolean(),
  }),
  per_request_limits: nullable("Limits are per key."),
  default_parameters: nullable("Defaults are those of the operations."),
  supported_parameters: Type.Array(Type.String()),
  links: Type.Object({
    details: Type.String({ format: "uri-reference", description: "Where the model's endpoints are." }),
  }),
};

const speechModelSchema = Type.Object({
  ...modelFields,
  supported_voices: Type.Array(Type.String(), { description: "Empty when any string is accepted." }),
  voices: Type.Array(voiceSchema),
  default_voice: Type.Union([Type.String(), Type.Null()], { description: "Null: `voice` is required." }),
  response_formats: Type.Array(stringEnum(["mp3", "pcm"])),
  max_input_characters: Type.Integer({ minimum: 0, description: "Longest input, Unicode code points." }),
  endpoints: Type.Array(speechEndpointSchema, { description: "In order of preference." }),
});

const imageModelSchema = Type.Object({
  ...modelFields,
  supported_voices: nullable("Images have none."),
  endpoints: Type.Array(imageEndpointSchema, { description: "In order of preference." }),
});

/** A model of either medium. */
export const modelSchema = Type.Union([speechModelSchema, imageModelSchema]);

/** A model of either medium, as it is shown. */
export type ModelBody = Static<typeof modelSchema>;

/** The models of both media as one list, ordered by id; `apiPath` is where the API's own paths begin. */
export function toModels(
  speech: readonly SpeechModel[],
  images: readonly ImageModel[],
  apiPath: string,
): ModelBody[] {
  const links = ({ id }: SpeechModel | ImageModel) => {
    const path = id.split("/").map(encodeURIComponent).join("/");
    return { links: { details: `${apiPath}/models/${path}/endpoints` } };
  };
  const models = [
    ...speech.map((model) => ({ ...toSpeechModel(model), ...links(model) })),
    ...images.map((model) => ({ ...toImageModel(model), ...links(model) })),
  ];
  return models.sort((one, other) => (one.id < other.id ? -1 : 1));
}

function toSpeechModel(model: SpeechModel): Omit<Static<typeof speechModelSchema>, "links"> {
  const endpoints = model.endpoints.map(toSpeechEndpoint);
  return {
    ...toModelFields(model, toArchitecture(["text"], ["speech"])),
    supported_parameters: speechParameters(model.endpoints),
    supported_voices: model.voices.map(({ id }) => id),
    voices: model.voices.map(({ id, name, language }) => ({
      id,
      name: name === "" ? null : name,
      language: language === "" ? null : language,
    })),
    default_voice: model.defaultVoice === "" ? null : model.defaultVoice,
    response_formats: [...new Set(endpoints.flatMap(({ response_formats }) => response_formats))],
    max_input_characters: Math.max(0, ...endpoints.map(({ max_input_characters }) => max_input_characters)),
    endpoints,
  };
}

/** What can be set on at least one endpoint of a speech model, by the names of POST /audio/speech. */
export function speechParameters(endpoints: readonly SpeechEndpoint[]): string[] {
  const hasSpeed = endpoints.some(({ supportsSpeed }) => supportsSpeed);
  const hasInstructions = endpoints.some(({ supportsInstructions }) => supportsInstructions);
  return [
    ...["voice", "response_format"],
    ...(hasSpeed ? ["speed"] : []),
    ...(hasInstructions ? ["instructions"] : []),
  ];
}

function toSpeechEndpoint(endpoint: SpeechEndpoint): Static<typeof speechEndpointSchema> {
  return {
    provider_name: endpoint.providerName,
    provider_slug: endpoint.providerSlug,
    response_formats: endpoint.formats.map((format) => (format === AudioFormat.PCM ? "pcm" : "mp3")),
    max_input_characters: endpoint.maxInputCharacters,
    supports_speed: endpoint.supportsSpeed,
    supports_instructions: endpoint.supportsInstructions,
    allowed_passthrough_parameters: endpoint.allowedPassthroughParameters,
    pricing: endpoint.prices.map((price) => toPriceLine(price, unitOfSpeech(price.billable))),
  };
}

function toImageModel(model: ImageModel): Omit<Static<typeof imageModelSchema>, "links"> {
  return {
    ...toModelFields(model, toArchitecture(model.inputModalities, model.outputModalities)),
    supported_parameters: model.supportedParameters.map(({ name }) => name),
    supported_voices: null,
    endpoints: model.endpoints.map(({ providerName, providerSlug, prices }) => ({
      provider_name: providerName,
      provider_slug: providerSlug,
      pricing: prices.map((price) => toPriceLine(price, price.unit)),
    })),
  };
}

/** What goes into a model and comes out of it, as it is shown. */
export function toArchitecture(inputs: string[], outputs: string[]): ModelBody["architecture"] {
  return {
    modality: `${inputs.join("+")}->${outputs.join("+")}`,
    input_modalities: inputs,
    output_modalities: outputs,
    tokenizer: "Media",
    instruct_type: null,
  };
}

function toModelFields(model: SpeechModel | ImageModel, architecture: ModelBody["architecture"]) {
  return {
    id: model.id,
    object: "model" as const,
    owned_by: model.id.slice(0, model.id.indexOf("/")),
    canonical_slug: model.permaslug,
    name: model.name,
    description: model.description,
    created: Number(model.createdUnixS),
    context_length: null,
    architecture,
    pricing: toPricing(model.endpoints[0]?.prices ?? []),
    top_provider: { context_length: null, max_completion_tokens: null, is_moderated: false },
    per_request_limits: null,
    default_parameters: null,
  };
}

/** An endpoint's prices under the names that lists of text models use. */
export function toPricing(prices: readonly (CataloguePrice & { unit?: string })[]): ModelBody["pricing"] {
  const priceOf = (...lines: readonly string[]) => {
    const found = prices.find((price) => lines.includes(`${price.billable}/${unitOf(price)}`));
    return unitPriceUsd(found?.nanoUsdPerMillion ?? 0n);
  };
  return {
    prompt: priceOf("input_character/character", "input_text_token/token", "input_text/token"),
    completion: priceOf("output_audio_token/token", "output_image/token", "output_image_token/token"),
    request: priceOf("request/request", "output_image/request"),
    image: priceOf("output_image/image"),
  };
}

function unitOf(price: { billable: string; unit?: string }): string {
  return price.unit ?? unitOfSpeech(price.billable);
}

/** What speech bills by one line: `input_character` by the character, `output_audio_token` by the token. */
function unitOfSpeech(billable: string): PriceLine["unit"] {
  return billable.slice(billable.lastIndexOf("_") + 1);
}
