import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

const columns = sql`
  -- No index holds it, so that it changes in place.
  ALTER TABLE api_key ADD last_used_at timestamptz;
`;

/** When keys were used last. */
export const keyUse: Migration = {
  async up(database: Kysely<unknown>) {
    await columns.execute(database);
  },
};
