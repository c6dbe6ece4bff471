import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** When keys were used last. */
export const keyUse = sqlMigration(sql`
  -- No index holds it, so that it changes in place.
  ALTER TABLE api_key ADD last_used_at timestamptz;
`);
