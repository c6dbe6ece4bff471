import type { components } from "../../../gen/openapi.ts";

/** A key as the interface lists it. */
export type KeyRecord = Omit<components["schemas"]["KeyList"]["data"][number], "external_user">;

/** A key that was just made, with the secret that is told this once. */
export interface FreshKey {
  readonly name: string;
  readonly secret: string;
}

/** How a key stands, and how good that is. */
export function stateOf(
  { disabled, expires_at, limit_remaining }: Pick<KeyRecord, "disabled" | "expires_at" | "limit_remaining">,
  now: number,
): { readonly word: string; readonly tone: "good" | "warn" | "bad" } {
  if (disabled) return { word: "disabled", tone: "bad" };
  if (expires_at !== null && Date.parse(expires_at) <= now) return { word: "expired", tone: "bad" };
  if (limit_remaining !== null && limit_remaining <= 0) return { word: "limit reached", tone: "warn" };
  return { word: "works", tone: "good" };
}
