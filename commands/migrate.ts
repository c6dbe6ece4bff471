import { migrateSchema } from "../lib/database/migrate.ts";
import { databaseUrlVar, readConfig } from "../lib/runtime/config.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { schemas } from "../standalone/schemas.ts";
import { failureLine, runCommand } from "./command-line.ts";

await runCommand(async () => {
  const { DATABASE_URL } = readConfig({ DATABASE_URL: databaseUrlVar() });
  for (const steps of schemas) {
    const names = await migrateSchema(DATABASE_URL, steps, silentLog);
    console.log(`${steps.schema}: ${names.length === 0 ? "up to date" : `applied ${names.join(", ")}`}`);
  }
}, describe);

function describe(thrown: unknown): string {
  const { code = "", address } = thrown as NodeJS.ErrnoException & { address?: string };
  // Failures to connect name an address, or are several in one.
  if (address !== undefined || thrown instanceof AggregateError || code === "ENOTFOUND") {
    return `error: the database can't be reached (${code || "no connection"})`;
  }
  return failureLine(thrown);
}
