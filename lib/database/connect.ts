import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { Log } from "../runtime/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { prepareMarked } from "./prepared-statements.ts";

interface DatabaseOptions {
  /** `postgres://` URL; what its query says (`sslmode`, `statement_timeout`, …) goes before the defaults here. */
  readonly url: string;
  /** The one schema that names resolve in; lower-case letters, digits and underscores. */
  readonly schema: string;
  readonly log: Log;
  /** Most connections open at once; 8 unless given, since more of them only slow down an account that all want. */
  readonly maxConnections?: number;
  /** Tells how busy the pool is. */
  readonly metrics?: Metrics | undefined;
}

const defaultMaxConnections = 8;

/** Time limits in milliseconds: an operation on the database ends, one way or the other. */
const limits = {
  connectionTimeoutMillis: 5000,
  statement_timeout: 15_000,
  lock_timeout: 5000,
  idle_in_transaction_session_timeout: 15_000,
  idleTimeoutMillis: 30_000,
  maxLifetimeSeconds: 1800,
};

/**
 * A pool of connections to one schema; nothing is opened before the first query. `int8` is a bigint, `timestamptz` a
 * Date, `date` a text `YYYY-MM-DD`, `numeric` a text. `destroy()` closes it once running queries have ended. Broken
 * connections are logged and replaced. Waiting longer than 5 s for a connection throws.
 */
export function connectDatabase<DB>(options: DatabaseOptions): Kysely<DB> {
  const { url, schema, log, maxConnections = defaultMaxConnections } = options;
  const pool = new pg.Pool({
    connectionString: withSearchPath(url, schema),
    application_name: `media-gateway ${schema}`,
    max: maxConnections,
    keepAlive: true,
    types: { getTypeParser },
    ...limits,
  });
  // A connection that breaks emits on the pool while idle and only on itself while in use.
  pool.on("error", (error) => {
    // A pool that ends does not wait until its connections have gone.
    if (!pool.ending) log.warn({ err: error, schema }, "idle database connection broke");
  });
  pool.on("connect", (client) => {
    prepareMarked(client);
    client.on("error", (error) => log.debug({ err: error, schema }, "database connection broke"));
  });
  if (options.metrics !== undefined) watchPool(options.metrics, schema, pool);
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }) });
}

function watchPool(metrics: Metrics, schema: string, pool: pg.Pool): void {
  metrics.observe({
    name: "media_gateway_database_connections",
    help: "Connections to the database that are open, by what they do.",
    kind: "gauge",
    read: () => [
      { value: pool.totalCount - pool.idleCount, labels: { schema, state: "busy" } },
      { value: pool.idleCount, labels: { schema, state: "idle" } },
    ],
  });
  metrics.observe({
    name: "media_gateway_database_waiting",
    help: "Queries that wait for a connection.",
    kind: "gauge",
    read: () => [{ value: pool.waitingCount, labels: { schema } }],
  });
}

/** Adds the search path to the URL's own server options, which would otherwise replace it. */
function withSearchPath(url: string, schema: string): string {
  if (!/^[a-z_][a-z0-9_]*$/.test(schema)) throw new Error(`not a plain schema name: ${schema}`);
  const parsed = new URL(url);
  const given = parsed.searchParams.get("options");
  const ours = `-c search_path=${schema}`;
  parsed.searchParams.set("options", given === null ? ours : `${given} ${ours}`);
  return parsed.href;
}

const { builtins } = pg.types;
/** Object ids of array types, which the driver gives no names to. */
const arrayOf: Readonly<Record<"int8" | "date" | "text", number>> = { int8: 1016, date: 1182, text: 1009 };

const textArray: (text: string) => (string | null)[] = pg.types.getTypeParser(arrayOf.text, "text");

const textParsers: Readonly<Record<number, (text: string) => unknown>> = {
  [builtins.INT8]: BigInt,
  [arrayOf.int8]: (text) => textArray(text).map((item) => (item === null ? null : BigInt(item))),
  [builtins.DATE]: (text) => text,
  [arrayOf.date]: textArray,
};

const getTypeParser: typeof pg.types.getTypeParser = (oid, format) =>
  (format === "binary" ? undefined : textParsers[oid]) ?? pg.types.getTypeParser(oid, format);
