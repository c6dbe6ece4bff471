import { useQuery } from "@tanstack/react-query";
import { answerOf } from "../../api/api.ts";
import { useApi, useIsHeld } from "../../session/session-context.tsx";

/** What the choice of a model needs to know. */
export interface Choice {
  readonly id: string;
}

/** The first model of a provider that needs no key, which costs next to nothing; the first of all without one. */
export function cheapestOf<T extends Choice>(
  models: readonly T[],
  freeProviders: readonly string[],
): T | undefined {
  return models.find(({ id }) => freeProviders.some((slug) => id.startsWith(`${slug}/`))) ?? models[0];
}

/** A model to try a medium with, which works as the gateway stands. */
export function useModelToTry(medium: "speech" | "image") {
  const api = useApi("inference");
  return useQuery({
    queryKey: ["model-to-try", medium],
    enabled: useIsHeld("inference"),
    staleTime: Number.POSITIVE_INFINITY,
    async queryFn() {
      const query = { output_modalities: [medium] };
      const [models, providers] = await Promise.all([
        answerOf(api.GET("/models", { params: { query } })),
        answerOf(api.GET("/providers")),
      ]);
      const free = providers.data
        .filter(({ opened_by }) => opened_by === "no_key_needed")
        .map(({ slug }) => slug);
      const model = cheapestOf(models.data, free);
      if (model === undefined) return null;
      return { id: model.id, voice: ("supported_voices" in model && model.supported_voices?.[0]) || "" };
    },
  });
}
