import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Records of generations, their sums by day, and how far back records reach. */
export const usage = sqlMigration(sql`
  -- What clients and people call an endpoint; the id is derived from the three names.
  CREATE TABLE naming (
    id uuid PRIMARY KEY,
    model text NOT NULL,
    permaslug text NOT NULL,
    provider_name text NOT NULL
  );

  -- One row for each generation: the event of the highest revision, and what roll-ups need of it.
  CREATE TABLE record (
    event_id text COLLATE "C" PRIMARY KEY,
    revision smallint NOT NULL,
    account_id uuid NOT NULL,
    ended_at timestamptz NOT NULL,
    endpoint_id uuid NOT NULL,
    key_hash bytea NOT NULL,
    -- All zeros where there is no member.
    member_id uuid NOT NULL,
    naming_id uuid NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    charged_nano_usd bigint NOT NULL,
    byok_list_nano_usd bigint NOT NULL,
    event bytea NOT NULL
  );
  CREATE INDEX record_by_end ON record (ended_at);

  -- The sums of records by UTC day of their end. No index holds a sum, and pages keep room, so that rows change in place.
  CREATE TABLE activity (
    account_id uuid NOT NULL,
    day date NOT NULL,
    endpoint_id uuid NOT NULL,
    key_hash bytea NOT NULL,
    member_id uuid NOT NULL,
    naming_id uuid NOT NULL REFERENCES naming,
    requests bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    charged_nano_usd bigint NOT NULL,
    byok_list_nano_usd bigint NOT NULL,
    -- When the last record of revision 1 ended; null while there is none. Revision 1 is final, so it never goes back.
    last_ended_at timestamptz,
    PRIMARY KEY (account_id, day, endpoint_id, key_hash, member_id, naming_id)
  ) WITH (fillfactor = 70);
  CREATE INDEX activity_by_day ON activity (day);

  -- One row: the records of earlier days are pruned, and no event of theirs is taken any more.
  CREATE TABLE retention (
    id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    kept_from date NOT NULL
  );
  INSERT INTO retention (kept_from) VALUES ('1970-01-01');
`);
