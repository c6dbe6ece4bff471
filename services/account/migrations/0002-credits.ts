import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";
import { reserveFunction, usedOfKeyFunction } from "./0002-reserve.ts";
import { countClosedFunction, releaseFunction, settleFunction } from "./0002-settle.ts";

const tables = sql`
  ALTER TABLE account
    ADD granted_nano_usd bigint NOT NULL DEFAULT 0,
    ADD charged_nano_usd bigint NOT NULL DEFAULT 0,
    ADD held_nano_usd bigint NOT NULL DEFAULT 0 CHECK (held_nano_usd >= 0),
    ADD balance_nano_usd bigint GENERATED ALWAYS AS (granted_nano_usd - charged_nano_usd) STORED;

  -- What changes with each request changes in place: no index has it, and pages keep room for it.
  ALTER TABLE account SET (fillfactor = 50);

  -- What a line of rotated keys has spent and has on hold; the row that its requests queue for.
  CREATE TABLE key_line (
    rate_bucket text PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES account,
    held_nano_usd bigint NOT NULL DEFAULT 0 CHECK (held_nano_usd >= 0),
    spent_nano_usd bigint NOT NULL DEFAULT 0,
    byok_nano_usd bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);

  -- The same by UTC day of the reservation; every period of a limit is a run of days.
  CREATE TABLE key_line_day (
    rate_bucket text NOT NULL REFERENCES key_line,
    day date NOT NULL,
    held_nano_usd bigint NOT NULL DEFAULT 0 CHECK (held_nano_usd >= 0),
    spent_nano_usd bigint NOT NULL DEFAULT 0,
    byok_nano_usd bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (rate_bucket, day)
  ) WITH (fillfactor = 70);

  CREATE TABLE hold (
    id text COLLATE "C" PRIMARY KEY,
    -- Of the process that asked; a hold that was refused or released may name an account that does not exist.
    account_id uuid NOT NULL,
    state text NOT NULL CHECK (state IN ('open', 'settled', 'lost', 'released', 'refused')),
    -- Why a reservation was refused.
    refusal text CHECK (refusal IN ('credits', 'key_limit', 'too_late')),
    rate_bucket text,
    -- The UTC day that it was held on; its hold and its spending count there, whenever it is closed.
    day date,
    amount_nano_usd bigint NOT NULL DEFAULT 0 CHECK (amount_nano_usd >= 0),
    -- What it takes of the key's limit while it is open.
    key_amount_nano_usd bigint NOT NULL DEFAULT 0 CHECK (key_amount_nano_usd >= 0),
    deadline timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    closed_at timestamptz,
    -- While open the draft of a lost event, after that the event that stands.
    event bytea,
    revision integer,
    cost_nano_usd bigint NOT NULL DEFAULT 0,
    debited_nano_usd bigint NOT NULL DEFAULT 0,
    -- Whether the event that stands was met on the usage topic.
    seen boolean NOT NULL DEFAULT false,
    -- When the event, or the draft, is published next; null when there is nothing to publish.
    publish_due_at timestamptz,
    publish_count integer NOT NULL DEFAULT 0
  );
  CREATE INDEX hold_due ON hold (publish_due_at) WHERE publish_due_at IS NOT NULL;
  CREATE INDEX hold_by_deadline ON hold (deadline);

  -- Double entry: each row moves an amount from one book to another. Grants: from 'granted' to 'customer'; charges: from
  -- 'customer' to 'revenue'.
  CREATE TABLE ledger_entry (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    account_id uuid NOT NULL REFERENCES account,
    debit text NOT NULL CHECK (debit IN ('granted', 'customer', 'revenue')),
    credit text NOT NULL CHECK (credit IN ('granted', 'customer', 'revenue')),
    amount_nano_usd bigint NOT NULL CHECK (amount_nano_usd > 0),
    generation_id text,
    revision integer,
    grant_id text,
    CHECK (debit <> credit),
    CHECK ((generation_id IS NULL) <> (grant_id IS NULL))
  );
  CREATE UNIQUE INDEX ledger_entry_by_grant ON ledger_entry (grant_id) WHERE grant_id IS NOT NULL;
  CREATE UNIQUE INDEX ledger_entry_by_generation ON ledger_entry (generation_id, revision)
    WHERE generation_id IS NOT NULL;
  CREATE INDEX ledger_entry_by_account ON ledger_entry (account_id, id);
`;

/** Credit: the ledger, the holds of requests under way, and what each line of keys has spent. */
export const credits = sqlMigration(
  tables,
  usedOfKeyFunction,
  reserveFunction,
  countClosedFunction,
  settleFunction,
  releaseFunction,
);
