import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Accounts' own keys at providers. */
export const providerKeys = sqlMigration(sql`
  CREATE TABLE provider_key (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES account,
    provider_slug text NOT NULL,
    name text NOT NULL,
    label text NOT NULL,
    -- Sealed under a master key and bound to account, id and provider; erased with the key.
    sealed bytea,
    disabled boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    CHECK ((sealed IS NULL) = (deleted_at IS NOT NULL))
  );
  CREATE UNIQUE INDEX provider_key_in_use ON provider_key (account_id, provider_slug) WHERE deleted_at IS NULL;
`);
