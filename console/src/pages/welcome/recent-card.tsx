import { useQuery } from "@tanstack/react-query";
import { answerOf } from "../../api/api.ts";
import { EmptyState } from "../../kit/empty-state.tsx";
import { LazySeriesChart } from "../../kit/lazy-series-chart.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { useApi } from "../../session/session-context.tsx";
import { hoursUntil } from "./hours-until.ts";

/** The requests of the last two days, by the hour. */
export function RecentCard() {
  const api = useApi("management");
  const series = useQuery({
    queryKey: ["activity-series", "hour"],
    queryFn: async () =>
      (await answerOf(api.GET("/activity/series", { params: { query: { step: "hour" } } }))).data,
  });
  return (
    <section className="card" aria-labelledby="recent">
      <h2 id="recent">Requests of the last two days</h2>
      <QueryView query={series} lines={6}>
        {(points) => {
          if (points.length === 0) {
            return (
              <EmptyState title="No requests yet">
                <p>What is heard and seen above will be counted here.</p>
              </EmptyState>
            );
          }
          const requests = points.reduce((sum, point) => sum + point.requests, 0);
          const errors = points.reduce((sum, point) => sum + point.errors, 0);
          return (
            <LazySeriesChart
              label={`${requests} requests in the last two days, ${errors} of them with an error`}
              series={["served", "errors"]}
              points={hoursUntil(new Date(), points)}
              step="hour"
              format={(value) => String(value)}
            />
          );
        }}
      </QueryView>
    </section>
  );
}
