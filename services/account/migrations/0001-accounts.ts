import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Accounts, their members and keys, and the audit of what operators change. */
export const accounts = sqlMigration(sql`
  CREATE TABLE account (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    kind text NOT NULL CHECK (kind IN ('personal', 'organization')),
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX account_by_age ON account (created_at, id);

  CREATE TABLE member (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    account_id uuid NOT NULL REFERENCES account,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    removed_at timestamptz,
    UNIQUE (account_id, id)
  );

  CREATE TABLE api_key (
    hash text PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{64}$'),
    account_id uuid NOT NULL REFERENCES account,
    member_id uuid,
    kind text NOT NULL CHECK (kind IN ('inference', 'management')),
    scopes text[] NOT NULL CHECK (scopes <@ ARRAY['speech', 'images']),
    name text NOT NULL,
    label text NOT NULL,
    disabled boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz,
    expires_at timestamptz,
    deleted_at timestamptz,
    limit_nano_usd bigint CHECK (limit_nano_usd >= 0),
    limit_reset text CHECK (limit_reset IN ('daily', 'weekly', 'monthly')),
    include_byok_in_limit boolean NOT NULL DEFAULT false,
    rate_limit_per_minute integer CHECK (rate_limit_per_minute > 0),
    rate_bucket text NOT NULL CHECK (rate_bucket ~ '^[0-9a-f]{64}$'),
    FOREIGN KEY (account_id, member_id) REFERENCES member (account_id, id),
    CHECK (kind = 'inference' OR scopes = '{}')
  );
  CREATE INDEX api_key_by_account ON api_key (account_id, created_at DESC, hash) WHERE deleted_at IS NULL;
  CREATE INDEX api_key_by_member ON api_key (member_id) WHERE member_id IS NOT NULL;

  CREATE TABLE audit (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    operator text NOT NULL,
    action text NOT NULL,
    account_id uuid REFERENCES account,
    subject text NOT NULL
  );
  CREATE INDEX audit_by_account ON audit (account_id, id);
`);
