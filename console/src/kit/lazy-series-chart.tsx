import { lazy, Suspense } from "react";
import type { SeriesChartProps } from "./series-chart.tsx";

const SeriesChart = lazy(async () => ({ default: (await import("./series-chart.tsx")).SeriesChart }));

/** SeriesChart, whose code is loaded when there is one to show. */
export function LazySeriesChart(props: SeriesChartProps) {
  return (
    <Suspense fallback={<span className="skeleton chart" />}>
      <SeriesChart {...props} />
    </Suspense>
  );
}
