import type { SeriesPoint } from "../../kit/series-chart.tsx";
import { boundText, groupsOf, type Point, type Totals, totalsOf } from "./totals.ts";

/** How long a step is. */
export type Step = "hour" | "day";

const stepMs = { hour: 3_600_000, day: 86_400_000 };
/** The same that GET /activity/series gives unasked: back from the step that is under way, which is one more. */
const stepsBack = { hour: 48, day: 30 };
/** As many as there are colours. */
const mostSeries = 6;

/** When each step of the window begins, those in which nothing ended included. */
export function stepsUntil(now: Date, step: Step): string[] {
  const last = Math.floor(now.getTime() / stepMs[step]) * stepMs[step];
  return Array.from({ length: stepsBack[step] + 1 }, (_, index) =>
    new Date(last - (stepsBack[step] - index) * stepMs[step]).toISOString(),
  );
}

/** A part of a stack, and which points it is made of. */
export interface Stacked {
  readonly name: string;
  readonly has: (point: Point) => boolean;
}

/** The groups that have a colour of their own, and one for the rest. */
export function stackedGroups(points: readonly Point[], nameOf: (group: string | null) => string): Stacked[] {
  const groups = groupsOf(points).map(({ group }) => group);
  const own = groups.length > mostSeries ? groups.slice(0, mostSeries - 1) : groups;
  const rest = new Set(groups.slice(own.length));
  const stacked = own.map((group) => ({
    name: nameOf(group),
    has: (point: Point) => point.group === group,
  }));
  if (rest.size === 0) return stacked;
  return [...stacked, { name: `${rest.size} others`, has: (point) => rest.has(point.group) }];
}

/** The points of a chart of one measure, stacked by groups. */
export function groupPoints(
  points: readonly Point[],
  steps: readonly string[],
  stacked: readonly Stacked[],
  measure: (totals: Totals) => number,
): SeriesPoint[] {
  return atSteps(points, steps, (own) =>
    stacked.map(({ name, has }) => [name, measure(totalsOf(own.filter(has)))]),
  );
}

/** How many first bytes came within which bound: two neighbours of the histogram are one part of the stack. */
export function firstByteBands(boundsMs: readonly number[]): { name: string; from: number; to: number }[] {
  const bands = [];
  for (let from = 0; from <= boundsMs.length; from += 2) {
    const bound = boundsMs[from + 1];
    const longest = boundText(boundsMs.at(-1) ?? 0);
    bands.push({
      name: bound === undefined ? `> ${longest}` : `≤ ${boundText(bound)}`,
      from,
      to: Math.min(from + 2, boundsMs.length + 1),
    });
  }
  return bands;
}

/** The points of the chart of first bytes. */
export function firstBytePoints(
  points: readonly Point[],
  steps: readonly string[],
  boundsMs: readonly number[],
): SeriesPoint[] {
  const bands = firstByteBands(boundsMs);
  return atSteps(points, steps, (own) => {
    const { firstByteCounts: counts } = totalsOf(own);
    return bands.map(({ name, from, to }) => [
      name,
      counts.slice(from, to).reduce((sum, count) => sum + count, 0),
    ]);
  });
}

function atSteps(
  points: readonly Point[],
  steps: readonly string[],
  valuesOf: (own: readonly Point[]) => (readonly [string, number])[],
): SeriesPoint[] {
  const byStep = Map.groupBy(points, ({ starts_at }) => Date.parse(starts_at));
  return steps.map((at) => ({ at, values: Object.fromEntries(valuesOf(byStep.get(Date.parse(at)) ?? [])) }));
}
