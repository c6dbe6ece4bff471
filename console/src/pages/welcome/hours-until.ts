import type { SeriesPoint } from "../../kit/series-chart.tsx";

const hourMs = 3_600_000;
const hours = 48;

/** What ended in an hour that has any. */
interface HourOfRequests {
  readonly starts_at: string;
  readonly requests: number;
  readonly errors: number;
}

/** Every hour of the two days up to now, those without requests included. */
export function hoursUntil(now: Date, counted: readonly HourOfRequests[]): SeriesPoint[] {
  const byStart = new Map(counted.map((hour) => [Date.parse(hour.starts_at), hour]));
  const last = Math.floor(now.getTime() / hourMs) * hourMs;
  return Array.from({ length: hours }, (_, index) => {
    const startMs = last - (hours - 1 - index) * hourMs;
    const { requests = 0, errors = 0 } = byStart.get(startMs) ?? {};
    return { at: new Date(startMs).toISOString(), values: { served: requests - errors, errors } };
  });
}
