import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Pauses that an operator made. */
export const operatorPauses = sqlMigration(sql`
  -- When an operator paused it last; that pause lasts while paused_at is the same.
  ALTER TABLE lane ADD operator_paused_at timestamptz
`);
