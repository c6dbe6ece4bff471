import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** Destinations, the events that wait for them, and the log of their deliveries. */
export const destinations = sqlMigration(sql`
  -- What its owner says of a destination. A deleted one keeps its row, without its settings.
  CREATE TABLE destination (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    -- Counts changes.
    version integer NOT NULL DEFAULT 1,
    privacy_mode boolean NOT NULL,
    sampling_rate double precision NOT NULL,
    -- Null: of all keys.
    key_hashes text[],
    -- Null: all events.
    filter_rules jsonb,
    tells_cost boolean NOT NULL,
    tells_identity boolean NOT NULL,
    tells_request_context boolean NOT NULL,
    -- The type's own settings as JSON, sealed.
    sealed bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    -- When what waited for a deleted one, and its log, were gone.
    purged_at timestamptz,
    CHECK ((deleted_at IS NULL) = (sealed IS NOT NULL))
  );
  CREATE INDEX destination_by_account ON destination (account_id, created_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX destination_to_purge ON destination (id) WHERE deleted_at IS NOT NULL AND purged_at IS NULL;

  -- How delivery to a destination goes; gone as soon as it is deleted.
  CREATE TABLE lane (
    destination_id uuid PRIMARY KEY REFERENCES destination,
    account_id uuid NOT NULL,
    enabled boolean NOT NULL,
    paused_at timestamptz,
    -- When it is to be looked at next; while it is claimed, when the claim runs out. Null: nothing waits.
    due_at timestamptz,
    -- Whose claim it is; null: nobody's.
    lease_id uuid,
    -- New events are not sent before.
    not_before timestamptz NOT NULL DEFAULT now(),
    -- The batch under way: all that waits up to and with this position.
    batch_id uuid,
    batch_through bigint,
    -- Failed attempts at this batch.
    attempts integer NOT NULL DEFAULT 0,
    -- Failed attempts since the last that worked, and when the first of them was.
    failures integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    -- Whether the last attempt took long.
    is_slow boolean NOT NULL DEFAULT false,
    last_failure text NOT NULL DEFAULT '',
    -- Most events of a batch, once the receiver found one too large.
    max_events integer,
    -- How many deliveries were logged.
    logged bigint NOT NULL DEFAULT 0,
    CHECK ((batch_id IS NULL) = (batch_through IS NULL))
  ) WITH (fillfactor = 50);
  CREATE INDEX lane_by_account ON lane (account_id);
  CREATE INDEX lane_due ON lane (due_at) WHERE enabled AND paused_at IS NULL;

  -- Events that wait for delivery, redacted. Positions are given out under the lane's lock, so that they become
  -- visible in their order.
  CREATE TABLE pending (
    destination_id uuid NOT NULL,
    position bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    event_id text COLLATE "C" NOT NULL,
    revision smallint NOT NULL,
    -- What the event still tells: see redact.ts.
    tells smallint NOT NULL,
    queued_at timestamptz NOT NULL DEFAULT now(),
    event bytea NOT NULL,
    PRIMARY KEY (destination_id, position)
  ) WITH (autovacuum_vacuum_scale_factor = 0.05);
  -- Only events of revision 0 are ever replaced.
  CREATE INDEX pending_replaceable ON pending (event_id) WHERE revision = 0;

  -- Which revision of an event was queued last, so that neither copies nor older ones are queued after it.
  CREATE TABLE known_event (
    event_id text COLLATE "C" PRIMARY KEY,
    revision smallint NOT NULL,
    ended_at timestamptz NOT NULL
  );
  CREATE INDEX known_event_by_end ON known_event (ended_at);

  -- Attempts, for their owners to read; the newest of each destination.
  CREATE TABLE delivery (
    destination_id uuid NOT NULL,
    -- Counts up without gaps for each destination.
    sequence bigint NOT NULL,
    batch_id uuid NOT NULL,
    status text NOT NULL CHECK (status IN ('delivered', 'retrying', 'dead')),
    attempt integer NOT NULL,
    event_count integer NOT NULL,
    -- 0: there was none.
    response_status smallint NOT NULL,
    latency_ms integer NOT NULL,
    cause text NOT NULL,
    attempted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (destination_id, sequence)
  ) WITH (autovacuum_vacuum_scale_factor = 0.05);
  CREATE INDEX delivery_by_time ON delivery (attempted_at);
`);
