import type { components } from "../../../gen/openapi.ts";
import { usdOf } from "./usd-input.ts";

type KeyRequest = components["schemas"]["KeyRequest"];

/** How long a new key may live. */
export const lifetimes = [
  { id: "never", title: "Never" },
  { id: "1", title: "In a day" },
  { id: "7", title: "In a week" },
  { id: "30", title: "In 30 days" },
  { id: "90", title: "In 90 days" },
  { id: "365", title: "In a year" },
] as const;

/** When a limit may start anew. */
export const resets = [
  { id: "never", title: "Never" },
  { id: "daily", title: "Each day, midnight UTC" },
  { id: "weekly", title: "Each Monday, midnight UTC" },
  { id: "monthly", title: "On the first of the month" },
] as const;

/** A key as it is being described. */
export interface KeyDraft {
  readonly name: string;
  readonly kind: "inference" | "management";
  readonly lifetime: (typeof lifetimes)[number]["id"];
  readonly speech: boolean;
  readonly images: boolean;
  readonly limit: string;
  readonly reset: (typeof resets)[number]["id"];
  readonly countsOwn: boolean;
}

/** A draft as it begins. */
export const newDraft: KeyDraft = {
  name: "",
  kind: "inference",
  lifetime: "never",
  speech: true,
  images: true,
  limit: "",
  reset: "never",
  countsOwn: false,
};

/** What is wrong with a draft, by the field. */
export type DraftFaults = Partial<Record<"name" | "scopes" | "limit", string>>;

const dayMs = 86_400_000;

/** The request that a draft stands for, undefined while something is wrong with it. */
export function keyBody(
  draft: KeyDraft,
  now: number,
): { readonly body: KeyRequest | undefined; readonly faults: DraftFaults } {
  const faults: DraftFaults = {};
  const { name, kind, lifetime } = draft;
  if (name.trim() === "") faults.name = "Give it a name.";
  const expires_at = lifetime === "never" ? null : new Date(now + Number(lifetime) * dayMs).toISOString();
  const body = {
    name: name.trim(),
    kind,
    expires_at,
    ...(kind === "inference" ? spending(draft, faults) : {}),
  };
  return { body: Object.keys(faults).length === 0 ? body : undefined, faults };
}

function spending({ speech, images, limit, reset, countsOwn }: KeyDraft, faults: DraftFaults) {
  const scopes = [...(speech ? (["speech"] as const) : []), ...(images ? (["images"] as const) : [])];
  if (scopes.length === 0) faults.scopes = "It must be able to make something.";
  if (limit.trim() === "") return { scopes };
  const usd = usdOf(limit);
  if (usd === undefined) faults.limit = "An amount such as 5 or 0.25, with at most nine decimals.";
  return {
    scopes,
    limit: usd ?? null,
    limit_reset: reset === "never" ? null : reset,
    include_byok_in_limit: countsOwn,
  };
}
