import { useQuery } from "@tanstack/react-query";
import type { components } from "../../../gen/openapi.ts";
import { answerOf } from "../../api/api.ts";
import { useApi, useIsHeld } from "../../session/session-context.tsx";

type Model = components["schemas"]["Model"];

/** A model that speaks. */
export type SpeechModel = Extract<Model, { supported_voices: string[] }>;

/** A model that draws: what can be set, and what it costs at each endpoint. */
export type ImageModel = components["schemas"]["ImageModelList"]["data"][number] & {
  readonly prices: readonly (readonly PriceLine[])[];
};

/** One line of an endpoint's price list. */
export type PriceLine = Model["endpoints"][number]["pricing"][number];

/** Every model that speaks. */
export function useSpeechModels() {
  const api = useApi("inference");
  return useQuery({
    queryKey: ["playground", "speech-models"],
    enabled: useIsHeld("inference"),
    async queryFn(): Promise<readonly SpeechModel[]> {
      const query = { output_modalities: ["speech" as const] };
      const [{ data }, providers] = await Promise.all([
        answerOf(api.GET("/models", { params: { query } })),
        answerOf(api.GET("/providers")),
      ]);
      const speaking = data.filter(
        (model): model is SpeechModel => "supported_voices" in model && model.supported_voices !== null,
      );
      return keylessFirst(speaking, providers);
    },
  });
}

/** Every model that draws. */
export function useImageModels() {
  const api = useApi("inference");
  return useQuery({
    queryKey: ["playground", "image-models"],
    enabled: useIsHeld("inference"),
    async queryFn(): Promise<readonly ImageModel[]> {
      const query = { output_modalities: ["image" as const] };
      const [able, priced, providers] = await Promise.all([
        answerOf(api.GET("/images/models")),
        answerOf(api.GET("/models", { params: { query } })),
        answerOf(api.GET("/providers")),
      ]);
      const ableById = new Map(able.data.map((model) => [model.id, model]));
      return keylessFirst(priced.data, providers).flatMap(({ id, endpoints }) => {
        const model = ableById.get(id);
        return model === undefined ? [] : [{ ...model, prices: endpoints.map(({ pricing }) => pricing) }];
      });
    },
  });
}

/** Those of providers that need no key, which cost next to nothing, stand before the others. */
function keylessFirst<T extends Pick<Model, "endpoints">>(
  models: readonly T[],
  { data }: { readonly data: readonly { readonly slug: string; readonly opened_by: string }[] },
): readonly T[] {
  const keyless = new Set(
    data.filter(({ opened_by }) => opened_by === "no_key_needed").map(({ slug }) => slug),
  );
  const { first = [], then = [] } = Object.groupBy(models, ({ endpoints }) =>
    endpoints.some(({ provider_slug }) => keyless.has(provider_slug)) ? "first" : "then",
  );
  return [...first, ...then];
}

/** The values that a model takes for a parameter; those given where it names none. */
export function valuesOf(
  { supported_parameters }: Pick<ImageModel, "supported_parameters">,
  name: string,
  otherwise: readonly string[] = [],
): readonly string[] {
  const parameter = supported_parameters[name];
  return parameter?.type === "enum" ? parameter.values : otherwise;
}

/** The most that a model takes of a parameter that is counted; 0 where it takes none. */
export function mostOf(
  { supported_parameters }: Pick<ImageModel, "supported_parameters">,
  name: string,
): number {
  const parameter = supported_parameters[name];
  return parameter?.type === "range" ? parameter.max : 0;
}
