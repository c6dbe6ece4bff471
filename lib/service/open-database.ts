import { connectDatabase } from "../database/connect.ts";
import type { SchemaMigrations } from "../database/migrate.ts";
import type { Host } from "./host.ts";

/** The schema of a service, watched and closed with its process. It may be away, and its migrations pending. */
export function openDatabase<DB>(
  { log, metrics, onStop }: Host,
  { DATABASE_URL: url }: { readonly DATABASE_URL: string },
  { schema }: SchemaMigrations,
): ReturnType<typeof connectDatabase<DB>> {
  const database = connectDatabase<DB>({ url, schema, log, metrics });
  onStop(() => database.destroy());
  return database;
}
