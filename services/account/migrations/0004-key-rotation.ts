import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Keys that replace others, and what else the audit has to say. */
export const keyRotation = sqlMigration(sql`
  -- The key's successor in its line of rotations.
  ALTER TABLE api_key ADD replaced_by text UNIQUE REFERENCES api_key;
  ALTER TABLE audit ADD note text NOT NULL DEFAULT '';
`);
