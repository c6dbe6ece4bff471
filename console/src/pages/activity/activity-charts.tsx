import type { ReactNode } from "react";
import { LazySeriesChart } from "../../kit/lazy-series-chart.tsx";
import { decimalUsd, formatUsd, nanoUsdOf } from "../../kit/money.ts";
import type { SeriesPoint } from "../../kit/series-chart.tsx";
import type { ActivityProps } from "./activity-query.ts";
import { firstByteBands, firstBytePoints, groupPoints, stackedGroups, stepsUntil } from "./chart-points.ts";
import { firstByteWithin, totalsOf } from "./totals.ts";

const count = (value: number) => value.toLocaleString();
const usd = (value: number) => formatUsd(nanoUsdOf(value));

/** Four measures over time. */
export function ActivityCharts({ points, boundsMs, choice, nameOf }: ActivityProps) {
  const steps = stepsUntil(new Date(), choice.step);
  const stacked = stackedGroups(points, nameOf);
  const totals = totalsOf(points);
  const half = firstByteWithin(totals.firstByteCounts, boundsMs, 0.5);
  const series = stacked.map(({ name }) => name);
  const shared = { step: choice.step, series, by: `by ${choice.by}` };
  const pointsOf = (measure: Parameters<typeof groupPoints>[3]) =>
    groupPoints(points, steps, stacked, measure);
  return (
    <div className="charts">
      <Measure
        {...shared}
        title="Requests"
        figure={count(totals.requests)}
        points={pointsOf(({ requests }) => requests)}
        format={count}
      />
      <Measure
        {...shared}
        title="Spend"
        figure={formatUsd(totals.nanoUsd)}
        // An amount is exact as a number of its own; none is added to another.
        points={pointsOf(({ nanoUsd }) => Number(decimalUsd(nanoUsd)))}
        format={usd}
        tick={usd}
      />
      <Measure
        {...shared}
        title="Errors"
        figure={count(totals.errors)}
        points={totals.errors === 0 ? undefined : pointsOf(({ errors }) => errors)}
        none="Nothing failed in this time."
        format={count}
      />
      <Measure
        {...shared}
        title="First byte"
        by="how many came how soon"
        figure={half === undefined ? "–" : `half ${half}`}
        series={firstByteBands(boundsMs).map(({ name }) => name)}
        points={half === undefined ? undefined : firstBytePoints(points, steps, boundsMs)}
        none="No output came in this time."
        format={count}
      />
    </div>
  );
}

interface MeasureProps {
  readonly title: string;
  readonly figure: string;
  /** By what its bars are stacked. */
  readonly by: string;
  readonly series: readonly string[];
  /** Undefined where there is nothing to draw, of which `none` tells. */
  readonly points: readonly SeriesPoint[] | undefined;
  readonly none?: ReactNode;
  readonly step: "hour" | "day";
  readonly format: (value: number) => string;
  readonly tick?: (value: number) => string;
}

function Measure({ title, figure, by, points, none, ...chart }: MeasureProps) {
  const id = `measure-${title.replace(" ", "-").toLowerCase()}`;
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>
          {title} <span className="soft small">{by}</span>
        </h2>
        <strong className="number">{figure}</strong>
      </div>
      {points === undefined ? (
        <p className="soft nothing">{none}</p>
      ) : (
        <>
          <LazySeriesChart
            {...chart}
            points={points}
            label={`${title} ${by}: ${figure}. The table below has every value.`}
          />
          <Legend series={chart.series} />
        </>
      )}
    </section>
  );
}

function Legend({ series }: { series: readonly string[] }) {
  return (
    <ul className="legend small">
      {series.map((name, index) => (
        <li key={name}>
          <span style={{ background: `var(--series-${index + 1})` }} aria-hidden="true" />
          {name}
        </li>
      ))}
    </ul>
  );
}
