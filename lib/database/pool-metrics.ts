import type { Metrics } from "../telemetry/metrics.ts";
import type { PoolReading } from "./connect.ts";

/** Exports how busy a pool of database connections is; for `connectDatabase`. */
export function watchPools(metrics: Metrics): (pool: PoolReading) => void {
  return (pool) => {
    const { schema } = pool;
    metrics.observe({
      name: "media_gateway_database_connections",
      help: "Connections to the database that are open, by what they do.",
      kind: "gauge",
      read: () => [
        { value: pool.open - pool.idle, labels: { schema, state: "busy" } },
        { value: pool.idle, labels: { schema, state: "idle" } },
      ],
    });
    metrics.observe({
      name: "media_gateway_database_waiting",
      help: "Queries that wait for a connection.",
      kind: "gauge",
      read: () => [{ value: pool.waiting, labels: { schema } }],
    });
  };
}
