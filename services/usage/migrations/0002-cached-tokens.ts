import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Tokens from providers' caches; 0 of what was recorded before. */
export const cachedTokens = sqlMigration(sql`
  -- The default is for writers of the release before, which don't know the column.
  ALTER TABLE record ADD cached_tokens bigint NOT NULL DEFAULT 0;
  ALTER TABLE activity ADD cached_tokens bigint NOT NULL DEFAULT 0;
`);
