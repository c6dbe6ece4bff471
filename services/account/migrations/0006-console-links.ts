import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Codes by which the console signs in, and the keys that they were exchanged for. */
export const consoleLinks = sqlMigration(sql`
  CREATE TABLE console_link (
    -- SHA-256 of the code in hex.
    hash text PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{64}$'),
    account_id uuid NOT NULL REFERENCES account,
    expires_at timestamptz NOT NULL
  );
  CREATE INDEX console_link_by_expiry ON console_link (expires_at);
  -- Such keys are taken away some time after they have expired.
  ALTER TABLE api_key ADD is_for_console boolean NOT NULL DEFAULT false;
`);
