import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/**
 * What records are listed by. A table of its own, because a new index on `record` would keep writers out for as long as
 * its rows take: this locks `record` for a moment, whatever it holds, and the rows of old records come in the
 * background (catch-up.ts).
 */
export const listing = sqlMigration(
  sql`
  -- One row for each record, as of the revision it names.
  CREATE TABLE listing (
    event_id text COLLATE "C" PRIMARY KEY,
    revision smallint NOT NULL,
    account_id uuid NOT NULL,
    ended_at timestamptz NOT NULL,
    model text NOT NULL,
    -- The slug.
    provider text NOT NULL,
    key_hash bytea NOT NULL,
    -- Null where there is none, as are the next.
    member_id uuid,
    session_id text,
    -- The number of media.event.v1.Outcome.
    outcome smallint NOT NULL,
    first_byte_ms integer
  );
  -- Ends are as good as unique within an account: what has the same one is sorted when it is read.
  CREATE INDEX listing_by_end ON listing (account_id, ended_at);
  CREATE INDEX listing_by_model ON listing (account_id, model, ended_at);
  CREATE INDEX listing_by_provider ON listing (account_id, provider, ended_at);
  CREATE INDEX listing_by_key ON listing (account_id, key_hash, ended_at);
  CREATE INDEX listing_by_outcome ON listing (account_id, outcome, ended_at);
  CREATE INDEX listing_by_member ON listing (account_id, member_id, ended_at) WHERE member_id IS NOT NULL;
  CREATE INDEX listing_by_session ON listing (account_id, session_id, ended_at) WHERE session_id IS NOT NULL;

  -- The UTC days whose records may lack what is derived of them: those of before this migration, and of two more days,
  -- in which replicas of the release before may go on.
  CREATE TABLE catch_up (day date PRIMARY KEY);
  INSERT INTO catch_up
    SELECT generate_series((min(ended_at) AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 2, '1 day')
    FROM record HAVING min(ended_at) IS NOT NULL;`,
  sql`
  CREATE FUNCTION unlist() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    DELETE FROM listing USING gone WHERE listing.event_id = gone.event_id;
    RETURN NULL;
  END $$`,
  sql`
  -- Whoever prunes, be it the release before, leaves no listing behind.
  CREATE TRIGGER unlist AFTER DELETE ON record REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION unlist()`,
);
