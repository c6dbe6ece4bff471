import type { components } from "../../../gen/openapi.ts";

/** A destination as the interface lists it, as far as it is shown. */
export type DestinationRecord = Pick<
  components["schemas"]["DestinationList"]["data"][number],
  "id" | "name" | "type" | "enabled" | "pause_reason" | "last_failure" | "config" | "created_at"
>;

/** What people call it. */
export function titleOf({ name, type }: Pick<DestinationRecord, "name" | "type">): string {
  return name ?? type;
}

/** How it stands. */
export function stateOf({
  enabled,
  pause_reason,
  last_failure,
}: Pick<DestinationRecord, "enabled" | "pause_reason" | "last_failure">): {
  readonly word: string;
  readonly tone: "good" | "warn" | "bad";
} {
  if (!enabled) return { word: "paused", tone: "warn" };
  if (pause_reason !== null) return { word: "paused after failures", tone: "bad" };
  if (last_failure !== null) return { word: "failing", tone: "warn" };
  return { word: "delivering", tone: "good" };
}
