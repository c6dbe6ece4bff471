import { useState } from "react";
import { useHashRoute } from "../../route/hash-route.ts";

/** The model that is chosen: by hand, else by the address, else the first. */
export function useChosen<T extends { readonly id: string }>(
  models: readonly [T, ...T[]],
): readonly [T, (id: string) => void] {
  const { query } = useHashRoute();
  const [chosen, choose] = useState<string>();
  const wished = chosen ?? query.get("model");
  return [models.find(({ id }) => id === wished) ?? models[0], choose];
}
