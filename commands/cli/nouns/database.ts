import { databaseUrlVar, readConfig } from "../../../lib/runtime/config.ts";
import type { Noun } from "../command.ts";

/** The schemas of the services. */
export const database: Noun = {
  name: "database",
  summary: "the schemas of the services",
  verbs: [
    {
      name: "migrate",
      summary: "bring all schemas forward to this version",
      details: "Environment: DATABASE_URL, of a role that may create schemas. Standalone does it by itself.",
      async run(_, { env }) {
        const { DATABASE_URL } = readConfig({ DATABASE_URL: databaseUrlVar() }, env);
        // Those alone who need them load the driver and all migrations.
        const { migrateSchema } = await import("../../../lib/database/migrate.ts");
        const { silentLog } = await import("../../../lib/runtime/log.ts");
        const { schemas } = await import("../../../standalone/schemas.ts");
        const data: { schema: string; applied: string[] }[] = [];
        for (const steps of schemas) {
          const applied = await migrateSchema(DATABASE_URL, steps, silentLog);
          data.push({ schema: steps.schema, applied });
        }
        const lines = data.map(({ schema, applied }) =>
          applied.length === 0 ? `${schema}: up to date` : `${schema}: applied ${applied.join(", ")}`,
        );
        return { lines, data };
      },
    },
  ],
};
