import type { operations } from "../../../gen/openapi.ts";

/** The filters of GET /generations. */
export type GenerationQuery = NonNullable<operations["listGenerations"]["parameters"]["query"]>;

/** The filters as they stand in the address, by these names; empty: not filtered. */
export const filterNames = [
  "period",
  "from",
  "to",
  "model",
  "provider",
  "key",
  "outcome",
  "member",
  "session",
] as const;

/** What is listed, as the address says it. */
export type Filter = Readonly<Record<(typeof filterNames)[number], string>>;

/** Periods of time that end now, or, with `between`, where the filter says. */
export const periods = [
  { id: "", title: "Any time", hours: 0 },
  { id: "hour", title: "The last hour", hours: 1 },
  { id: "day", title: "The last 24 hours", hours: 24 },
  { id: "week", title: "The last 7 days", hours: 7 * 24 },
  { id: "month", title: "The last 30 days", hours: 30 * 24 },
  { id: "between", title: "Between …", hours: 0 },
] as const;

/** How a generation may have ended. */
export const outcomes = ["succeeded", "failed", "cancelled", "lost"] as const;

/** The filter that an address has. */
export function filterOf(query: URLSearchParams): Filter {
  const entries = filterNames.map((name) => [name, query.get(name) ?? ""] as const);
  return Object.fromEntries(entries) as Record<(typeof filterNames)[number], string>;
}

/** Whether anything is left out by it. */
export function isFiltering(filter: Filter): boolean {
  return filterNames.some((name) => filter[name] !== "");
}

/** The filter as the interface takes it. A period that ends now begins where it does at `now`. */
export function generationQuery(filter: Filter, now: Date): GenerationQuery {
  const { period, model, provider, key, member, session } = filter;
  const outcome = outcomes.find((each) => each === filter.outcome);
  const hours = periods.find(({ id }) => id === period)?.hours ?? 0;
  const isBetween = period === "between";
  const from = isBetween
    ? instantOf(filter.from)
    : hours > 0 && new Date(now.getTime() - hours * 3_600_000).toISOString();
  const to = isBetween && instantOf(filter.to);
  return {
    ...(from && { from }),
    ...(to && { to }),
    ...(model !== "" && { model }),
    ...(provider !== "" && { provider }),
    ...(key !== "" && { api_key_hash: key }),
    ...(outcome && { outcome }),
    ...(member !== "" && { user_id: member }),
    ...(session !== "" && { session_id: session }),
  };
}

/** What a field for a time gave, `2030-01-31T12:00`, as an instant of UTC. */
function instantOf(local: string): string | undefined {
  const date = new Date(`${local}Z`);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
