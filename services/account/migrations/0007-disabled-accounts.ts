import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Accounts that an operator has disabled. The release before it lets their keys work. */
export const disabledAccounts = sqlMigration(sql`ALTER TABLE account ADD disabled_at timestamptz`);
