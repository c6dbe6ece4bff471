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
      const { data } = await answerOf(api.GET("/models", { params: { query } }));
      return data.filter(
        (model): model is SpeechModel => "supported_voices" in model && model.supported_voices !== null,
      );
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
      const [able, priced] = await Promise.all([
        answerOf(api.GET("/images/models")),
        answerOf(api.GET("/models", { params: { query } })),
      ]);
      const byId = new Map(priced.data.map((model) => [model.id, model]));
      return able.data.flatMap((model) => {
        const found = byId.get(model.id);
        if (found === undefined) return [];
        return [{ ...model, prices: found.endpoints.map(({ pricing }) => pricing) }];
      });
    },
  });
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
