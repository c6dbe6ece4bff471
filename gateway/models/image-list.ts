import Type, { type Static } from "typebox";
import type { ImageEndpoint, ImageModel, ParameterCapability } from "../../gen/media/image/v1/image_pb.ts";
import { stringEnum } from "../schema/field-schemas.ts";
import { endpointHealthSchema, toEndpointHealth } from "./health.ts";
import { priceLineSchema, toPriceLine } from "./price-line.ts";

const capabilitySchema = Type.Union([
  Type.Object({ type: stringEnum(["enum"]), values: Type.Array(Type.String()) }),
  Type.Object({ type: stringEnum(["range"]), min: Type.Number(), max: Type.Number() }),
  Type.Object({ type: stringEnum(["boolean"]) }),
]);

type Capability = Static<typeof capabilitySchema>;

const capabilitiesSchema = Type.Record(Type.String(), capabilitySchema, {
  description: "What can be set, by the names of POST /images; `mask` is one of POST /images/edits.",
});

/** The answer of GET /images/models. */
export const imageModelListSchema = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.String({ description: "What to put in `model`." }),
      name: Type.String(),
      description: Type.String(),
      created: Type.Integer({ description: "Unix seconds." }),
      architecture: Type.Object({
        input_modalities: Type.Array(Type.String()),
        output_modalities: Type.Array(Type.String()),
      }),
      supported_parameters: capabilitiesSchema,
      supports_streaming: Type.Boolean(),
      endpoints: Type.String({ format: "uri-reference", description: "Where the model's endpoints are." }),
    }),
  ),
});

/** The answer of GET /images/models/{author}/{slug}/endpoints. */
export const imageEndpointListSchema = Type.Object({
  id: Type.String({ description: "What to put in `model`." }),
  endpoints: Type.Array(
    Type.Object({
      provider_name: Type.String(),
      provider_slug: Type.String(),
      provider_tag: Type.Union([Type.String(), Type.Null()]),
      supported_parameters: capabilitiesSchema,
      allowed_passthrough_parameters: Type.Array(Type.String(), {
        description: "Keys of `provider.options.<provider_slug>` that are passed through.",
      }),
      supports_streaming: Type.Boolean(),
      health: endpointHealthSchema,
      pricing: Type.Array(priceLineSchema),
    }),
    { description: "In order of preference." },
  ),
});

/** The list of models as it is shown; `apiPath` is where the API's own paths begin. */
export function toImageModelList(
  models: readonly ImageModel[],
  apiPath: string,
): Static<typeof imageModelListSchema> {
  return {
    data: models.map((model) => ({
      id: model.id,
      name: model.name,
      description: model.description,
      created: Number(model.createdUnixS),
      architecture: {
        input_modalities: model.inputModalities,
        output_modalities: model.outputModalities,
      },
      supported_parameters: toCapabilities(model.supportedParameters),
      supports_streaming: model.supportsStreaming,
      endpoints: `${apiPath}/images/models/${model.id.split("/").map(encodeURIComponent).join("/")}/endpoints`,
    })),
  };
}

/** The endpoints of a model as they are shown. */
export function toImageEndpointList(model: ImageModel): Static<typeof imageEndpointListSchema> {
  return { id: model.id, endpoints: model.endpoints.map(toEndpoint) };
}

function toEndpoint(endpoint: ImageEndpoint) {
  return {
    provider_name: endpoint.providerName,
    provider_slug: endpoint.providerSlug,
    provider_tag: endpoint.providerTag === "" ? null : endpoint.providerTag,
    supported_parameters: toCapabilities(endpoint.supportedParameters),
    allowed_passthrough_parameters: endpoint.allowedPassthroughParameters,
    supports_streaming: endpoint.supportsStreaming,
    health: toEndpointHealth(endpoint.health),
    pricing: endpoint.prices.map((price) => toPriceLine(price, price.unit)),
  };
}

function toCapabilities(parameters: readonly ParameterCapability[]): Record<string, Capability> {
  return Object.fromEntries(
    parameters.flatMap(({ name, capability }): [string, Capability][] => {
      switch (capability.case) {
        case "enumValues":
          return [[name, { type: "enum", values: capability.value.values }]];
        case "range":
          return [[name, { type: "range", min: capability.value.min, max: capability.value.max }]];
        case "boolean":
          return capability.value ? [[name, { type: "boolean" }]] : [];
        default:
          return [];
      }
    }),
  );
}
