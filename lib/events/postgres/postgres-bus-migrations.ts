import type { SchemaMigrations } from "../../database/migrate.ts";
import { bus } from "./migrations/0001-bus.ts";
import { oneLog } from "./migrations/0002-one-log.ts";

/** The schema of the PostgreSQL bus and the steps that make it. */
export const busMigrations: SchemaMigrations = {
  schema: "bus",
  migrations: { "0001-bus": bus, "0002-one-log": oneLog },
};
