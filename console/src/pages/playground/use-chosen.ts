import { useState } from "react";
import { useHashRoute } from "../../route/hash-route.ts";

/** The model that is chosen: by hand, else by the address, else a built-in one, which costs next to nothing. */
export function useChosen<T extends { readonly id: string }>(
  models: readonly [T, ...T[]],
): readonly [T, (id: string) => void] {
  const { query } = useHashRoute();
  const [chosen, choose] = useState<string>();
  const wished = chosen ?? query.get("model");
  const model =
    models.find(({ id }) => id === wished) ?? models.find(({ id }) => id.startsWith("local/")) ?? models[0];
  return [model, choose];
}
