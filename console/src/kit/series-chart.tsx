import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";

/** One step of time and what each series came to in it. */
export interface SeriesPoint {
  /** When it begins, ISO 8601. */
  readonly at: string;
  readonly values: Readonly<Record<string, number>>;
}

/** What a chart of steps shows. */
export interface SeriesChartProps {
  /** What the chart shows, for screen readers, with the figures that matter: the bars themselves say nothing to them. */
  readonly label: string;
  /** From the bottom of the stack up; more than six share one colour from the sixth on. */
  readonly series: readonly string[];
  readonly points: readonly SeriesPoint[];
  readonly step: "hour" | "day";
  /** How a value is told in the tooltip; at the axis it is shortened. */
  readonly format: (value: number) => string;
  /** How a value is told at the axis where it is no whole number, such as an amount. */
  readonly tick?: (value: number) => string;
}

const colours = [1, 2, 3, 4, 5, 6].map((number) => `var(--series-${number})`);
const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const hourOfDay = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  hour: "2-digit",
  minute: "2-digit",
});
// A day of the interface is one of UTC.
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
const compact = new Intl.NumberFormat(undefined, { notation: "compact" });

/** Stacked bars over time, with axes and a tooltip. Comes in a chunk of its own: import LazySeriesChart. */
export function SeriesChart({ label, series, points, step, format, tick }: SeriesChartProps) {
  const told = step === "hour" ? hour : day;
  return (
    <figure className="chart" role="img" aria-label={label}>
      <ResponsiveContainer>
        <BarChart
          data={[...points]}
          margin={{ top: 4, right: 4, bottom: 0, left: 0 }}
          accessibilityLayer={false}
        >
          <CartesianGrid vertical={false} />
          <XAxis
            dataKey="at"
            tickFormatter={(at: string) => told.format(new Date(at))}
            tickLine={false}
            axisLine={{ stroke: "var(--line-strong)" }}
            minTickGap={24}
          />
          <YAxis
            width={tick === undefined ? 44 : "auto"}
            tickLine={false}
            axisLine={false}
            allowDecimals={tick !== undefined}
            tickFormatter={tick ?? ((value: number) => compact.format(value))}
          />
          <Tooltip
            cursor={{ fill: "var(--accent-soft)" }}
            isAnimationActive={false}
            content={({ active, label: at }) => {
              const point = points.find((each) => each.at === at);
              return active && point !== undefined ? (
                <PointDetail point={point} series={series} step={step} format={format} />
              ) : null;
            }}
          />
          {series.map((name, index) => (
            <Bar
              key={name}
              dataKey={(point: SeriesPoint) => point.values[name] ?? 0}
              name={name}
              stackId="all"
              fill={colours[index] ?? "var(--series-other)"}
              isAnimationActive={false}
            />
          ))}
        </BarChart>
      </ResponsiveContainer>
    </figure>
  );
}

type PointDetailProps = Pick<SeriesChartProps, "series" | "step" | "format"> & {
  readonly point: SeriesPoint;
};

function PointDetail({ point, series, step, format }: PointDetailProps) {
  const told = step === "hour" ? hourOfDay : day;
  return (
    <div className="chart-tooltip">
      <strong>{told.format(new Date(point.at))}</strong>
      <dl>
        {series.map((name) => (
          <div key={name} className="chart-value">
            <dt>{name}</dt>
            <dd>{format(point.values[name] ?? 0)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
