import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

const columns = sql`
  -- The default is for writers of the release before, which don't know the column.
  ALTER TABLE record ADD cached_tokens bigint NOT NULL DEFAULT 0;
  ALTER TABLE activity ADD cached_tokens bigint NOT NULL DEFAULT 0;
`;

/** Tokens from providers' caches; 0 of what was recorded before. */
export const cachedTokens: Migration = {
  async up(database: Kysely<unknown>) {
    await columns.execute(database);
  },
};
