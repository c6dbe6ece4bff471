import { migrateSchema } from "../lib/database/migrate.ts";
import { databaseUrlVar, readConfig } from "../lib/runtime/config.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { startFailure } from "../lib/service/process.ts";
import { schemas } from "../standalone/schemas.ts";

try {
  const { DATABASE_URL } = readConfig({ DATABASE_URL: databaseUrlVar() });
  for (const steps of schemas) {
    const names = await migrateSchema(DATABASE_URL, steps, silentLog);
    console.log(`${steps.schema}: ${names.length === 0 ? "up to date" : `applied ${names.join(", ")}`}`);
  }
} catch (thrown) {
  console.error(thrown instanceof Error ? failureLine(thrown) : String(thrown));
  process.exitCode = 1;
}

function failureLine(error: Error): string {
  const { code = "", address } = error as NodeJS.ErrnoException & { address?: string };
  // Failures to connect name an address, or are several in one.
  if (address !== undefined || error instanceof AggregateError || code === "ENOTFOUND") {
    return `error: the database can't be reached (${code || "no connection"})`;
  }
  return startFailure(error).split("\n")[0] ?? "";
}
