import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

const columns = sql`
  -- The key's successor in its line of rotations.
  ALTER TABLE api_key ADD replaced_by text UNIQUE REFERENCES api_key;
  ALTER TABLE audit ADD note text NOT NULL DEFAULT '';
`;

/** Keys that replace others, and what else the audit has to say. */
export const keyRotation: Migration = {
  async up(database: Kysely<unknown>) {
    await columns.execute(database);
  },
};
