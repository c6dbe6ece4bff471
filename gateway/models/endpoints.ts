import Type, { type Static } from "typebox";
import { Create } from "typebox/value";
import type { ImageModel } from "../../gen/media/image/v1/image_pb.ts";
import type { SpeechModel } from "../../gen/media/speech/v1/speech_pb.ts";
import { endpointHealthSchema, toEndpointHealth } from "./health.ts";
import { architectureSchema, pricingSchema, speechParameters, toArchitecture, toPricing } from "./list.ts";

const unknown = (description = "Not measured over all processes; `health` says what one has seen.") =>
  Type.Null({ description });
const never = (description: string) => Type.Literal(false, { description });

/** What there is for clients that read lists of text models. */
const fixedFields = {
  context_length: Type.Literal(0, { description: "These models have none." }),
  max_completion_tokens: unknown("These models have none."),
  max_prompt_tokens: unknown("These models have none."),
  quantization: unknown("Not told by providers."),
  service_tier: unknown("There are none."),
  native_tools: Type.Object({}, { description: "There are none." }),
  supports_diarization: never("No transcription here."),
  supports_implicit_caching: never("Not told by providers."),
  supports_tool_choice: Type.Object(
    { auto: never("No."), function: never("No."), none: never("No."), required: never("No.") },
    { description: "There are no tools." },
  ),
  latency_last_30m: unknown(),
  throughput_last_30m: unknown(),
  uptime_last_5m: unknown(),
  uptime_last_30m: unknown(),
  uptime_last_1d: unknown(),
};

const fixedValues = Create(Type.Object(fixedFields));

const endpointSchema = Type.Object({
  name: Type.String({ description: "Provider and exact model, for people." }),
  tag: Type.String({ description: "The provider's slug: what `provider.only` and its like take." }),
  provider_name: Type.String(),
  model_id: Type.String({ description: "What to put in `model`." }),
  model_name: Type.String(),
  pricing: pricingSchema,
  supported_parameters: Type.Array(Type.String()),
  health: endpointHealthSchema,
  ...fixedFields,
});

/** The answer of GET /models/{author}/{slug}/endpoints. */
export const modelEndpointsSchema = Type.Object({
  data: Type.Object({
    id: Type.String({ description: "What to put in `model`." }),
    name: Type.String(),
    description: Type.String(),
    created: Type.Integer({ description: "Unix seconds." }),
    architecture: architectureSchema,
    endpoints: Type.Array(endpointSchema, { description: "In order of preference." }),
  }),
});

type EndpointBody = Static<typeof endpointSchema>;
type ModelEndpoints = Static<typeof modelEndpointsSchema>;

/** The endpoints of a speech model as they are shown. */
export function toSpeechModelEndpoints(model: SpeechModel): ModelEndpoints {
  const endpoints = model.endpoints.map((endpoint) =>
    toEndpoint(model, endpoint, speechParameters([endpoint])),
  );
  return toAnswer(model, toArchitecture(["text"], ["speech"]), endpoints);
}

/** The endpoints of an image model as they are shown. */
export function toImageModelEndpoints(model: ImageModel): ModelEndpoints {
  const endpoints = model.endpoints.map((endpoint) => {
    const parameters = endpoint.supportedParameters.filter(({ capability }) => capability.value !== false);
    return toEndpoint(
      model,
      endpoint,
      parameters.map(({ name }) => name),
    );
  });
  return toAnswer(model, toArchitecture(model.inputModalities, model.outputModalities), endpoints);
}

type Model = SpeechModel | ImageModel;

function toAnswer(
  { id, name, description, createdUnixS }: Model,
  architecture: ModelEndpoints["data"]["architecture"],
  endpoints: EndpointBody[],
): ModelEndpoints {
  return { data: { id, name, description, created: Number(createdUnixS), architecture, endpoints } };
}

function toEndpoint(
  { id, name, permaslug }: Model,
  { providerName, providerSlug, prices, health }: Model["endpoints"][number],
  supported_parameters: string[],
): EndpointBody {
  return {
    name: `${providerName} | ${permaslug}`,
    tag: providerSlug,
    provider_name: providerName,
    model_id: id,
    model_name: name,
    pricing: toPricing(prices),
    supported_parameters,
    health: toEndpointHealth(health),
    ...fixedValues,
  };
}
