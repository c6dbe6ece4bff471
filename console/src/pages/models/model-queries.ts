import { useQuery } from "@tanstack/react-query";
import { answerOf } from "../../api/api.ts";
import type { useAnyApi } from "../../session/session-context.tsx";

/** A model of either medium, as GET /models lists it. */
export type Model = NonNullable<ReturnType<typeof useModels>["data"]>[number];

/** A model that speaks. */
export type SpeechModel = Extract<Model, { voices: unknown }>;

/** The interface, called with whichever key the tab has. */
export type AnyApi = NonNullable<ReturnType<typeof useAnyApi>>["api"];

/** Whether a model speaks. */
export function isSpeechModel(model: Model): model is SpeechModel {
  return "voices" in model;
}

/** Every model that can be used now. */
export function useModels(api: AnyApi) {
  return useQuery({
    queryKey: ["models"],
    queryFn: async () => (await answerOf(api.GET("/models"))).data,
  });
}

/** How the endpoints of a model have lately fared. */
export function useEndpoints(api: AnyApi, id: string) {
  return useQuery({
    queryKey: ["endpoints", id],
    refetchInterval: 10_000,
    queryFn: async () =>
      (await answerOf(api.GET("/models/{author}/{slug}/endpoints", { params: { path: pathOf(id) } }))).data
        .endpoints,
  });
}

function pathOf(id: string) {
  const slash = id.indexOf("/");
  return { author: id.slice(0, slash), slug: id.slice(slash + 1) };
}

/** The voices of a model. */
export function useVoices(api: AnyApi, model: string) {
  return useQuery({
    queryKey: ["voices", model],
    queryFn: async () => (await answerOf(api.GET("/audio/voices", { params: { query: { model } } }))).data,
  });
}

/** What can be set of an image model, and to which values. */
export function useImageModel(api: AnyApi, id: string) {
  return useQuery({
    queryKey: ["image-models", id],
    queryFn: async () =>
      (await answerOf(api.GET("/images/models"))).data.find((each) => each.id === id) ?? null,
  });
}
