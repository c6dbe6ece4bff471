import { sql } from "kysely";
import { silentLog } from "../runtime/log.ts";
import { connectDatabase } from "./connect.ts";
import { pendingMigrations, type SchemaMigrations } from "./migrate.ts";

/** What a look at a database shows. */
export interface DatabaseProbe {
  /** Such as `15.18`. */
  readonly version: string;
  /** By how much its clock is ahead of this machine's, milliseconds; negative when it is behind. */
  readonly clockAheadMs: number;
  /** By how much that may be off. */
  readonly clockErrorMs: number;
  /** The names of migrations that are missing, by schema. */
  readonly pending: ReadonlyMap<string, readonly string[]>;
}

/** Looks at a database on a connection of its own. Throws what the driver does. */
export async function probeDatabase(
  url: string,
  schemas: readonly SchemaMigrations[],
): Promise<DatabaseProbe> {
  const database = connectDatabase({ url, schema: "public", log: silentLog, maxConnections: 1 });
  try {
    // The first query opens the connection, which would count as the clock's error.
    await sql`SELECT 1`.execute(database);
    const sentMs = Date.now();
    const { rows } = await sql<{ version: string; now: Date }>`
      SELECT current_setting('server_version') AS version, clock_timestamp() AS now`.execute(database);
    const clockErrorMs = (Date.now() - sentMs) / 2;
    const [row] = rows;
    if (row === undefined) throw new Error("a SELECT without a row");
    const pending = new Map<string, readonly string[]>();
    for (const steps of schemas) pending.set(steps.schema, await pendingMigrations(database, steps));
    const clockAheadMs = Math.round(row.now.getTime() - sentMs - clockErrorMs);
    return { version: row.version, clockAheadMs, clockErrorMs, pending };
  } finally {
    await database.destroy();
  }
}
