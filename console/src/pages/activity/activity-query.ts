import { useQuery } from "@tanstack/react-query";
import { answerOf } from "../../api/api.ts";
import { useApi } from "../../session/session-context.tsx";
import type { Step } from "./chart-points.ts";
import type { Point } from "./totals.ts";

/** How far back is looked, in which steps. */
export const spans = [
  { id: "hour", title: "Last two days, by the hour" },
  { id: "day", title: "Last 30 days, by the day" },
] as const;

/** By what it is told apart. */
export const groupings = [
  { id: "model", title: "Model" },
  { id: "provider", title: "Provider" },
  { id: "key", title: "Key" },
  { id: "member", title: "Member" },
] as const;

/** What is shown, as the address says it. */
export interface Choice {
  readonly step: Step;
  readonly by: (typeof groupings)[number]["id"];
}

/** What the parts of the page are told. */
export interface ActivityProps {
  readonly points: readonly Point[];
  readonly boundsMs: readonly number[];
  readonly choice: Choice;
  readonly nameOf: (group: string | null) => string;
}

/** The choice of an address. */
export function choiceOf(query: URLSearchParams): Choice {
  return {
    step: query.get("step") === "day" ? "day" : "hour",
    by: groupings.find(({ id }) => id === query.get("by"))?.id ?? "model",
  };
}

/** The activity, and what its groups are called. */
export function useActivity({ step, by }: Choice) {
  const api = useApi("management");
  const activity = useQuery({
    queryKey: ["activity-series", step, by],
    queryFn: () => answerOf(api.GET("/activity/series", { params: { query: { step, group_by: by } } })),
    refetchInterval: 10_000,
  });
  const keys = useQuery({
    queryKey: ["keys", "to-choose"],
    queryFn: async () =>
      (await answerOf(api.GET("/keys", { params: { query: { include_disabled: true } } }))).data,
    enabled: by === "key",
  });
  const nameOf = (group: string | null) => {
    if (group === null) return `No ${by}`;
    const key = by === "key" && keys.data?.find(({ hash }) => hash === group);
    if (key) return `${key.name} (${key.label})`;
    return by === "key" ? `${group.slice(0, 12)}…` : group;
  };
  return { activity, nameOf };
}
