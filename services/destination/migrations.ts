import type { SchemaMigrations } from "../../lib/database/migrate.ts";
import { destinations } from "./migrations/0001-destinations.ts";

/** The schema of the destination service and the steps that make it. */
export const destinationMigrations: SchemaMigrations = {
  schema: "destination",
  migrations: { "0001-destinations": destinations },
};
