import type { SchemaMigrations } from "../../lib/database/migrate.ts";
import { destinations } from "./migrations/0001-destinations.ts";
import { operatorPauses } from "./migrations/0002-operator-pauses.ts";

/** The schema of the destination service and the steps that make it. */
export const destinationMigrations: SchemaMigrations = {
  schema: "destination",
  migrations: { "0001-destinations": destinations, "0002-operator-pauses": operatorPauses },
};
