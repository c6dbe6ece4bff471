import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

const tables = sql`
  CREATE TABLE topic (
    name text PRIMARY KEY CHECK (name ~ '^[a-zA-Z0-9._-]{1,249}$'),
    -- How long messages are kept at least; null is for ever.
    retention_ms bigint CHECK (retention_ms > 0)
  );

  CREATE TABLE partition (
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    topic text NOT NULL REFERENCES topic,
    number integer NOT NULL CHECK (number >= 0),
    -- The earliest message that is kept; everything before is deleted.
    first_offset bigint NOT NULL DEFAULT 0,
    -- What the next message gets. Whoever appends holds this row's lock until it has committed, so numbers become
    -- visible in their order and without gaps.
    next_offset bigint NOT NULL DEFAULT 0 CHECK (next_offset >= first_offset),
    -- When the last message was appended; never goes back.
    appended_at timestamptz NOT NULL DEFAULT '-infinity',
    UNIQUE (topic, number)
  ) WITH (fillfactor = 50);

  -- Partitions are never deleted; a foreign key would only cost each append a check for each message.
  CREATE TABLE message (
    partition_id integer NOT NULL,
    message_offset bigint NOT NULL,
    appended_at timestamptz NOT NULL,
    -- UTF-8. Not text and jsonb, which can't hold every string.
    key bytea NOT NULL,
    headers json NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (partition_id, message_offset)
  );

  CREATE TABLE consumer_group (
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    topic text NOT NULL REFERENCES topic,
    name text NOT NULL CHECK (name ~ '^[a-zA-Z0-9._-]{1,249}$'),
    UNIQUE (topic, name)
  );

  CREATE TABLE member (
    id uuid PRIMARY KEY,
    group_id integer NOT NULL REFERENCES consumer_group,
    -- Renewed while the member lives; after it others take its partitions over.
    expires_at timestamptz NOT NULL
  );
  CREATE INDEX member_by_group ON member (group_id);

  CREATE TABLE group_partition (
    group_id integer NOT NULL REFERENCES consumer_group,
    partition_id integer NOT NULL REFERENCES partition,
    -- The first message that the group has not finished with.
    next_offset bigint NOT NULL DEFAULT 0,
    -- The member that reads it; null when nobody does.
    member_id uuid,
    PRIMARY KEY (group_id, partition_id)
  ) WITH (fillfactor = 50);
`;

/** Topics, their messages, and how far each group has come. */
export const bus: Migration = {
  async up(database: Kysely<unknown>) {
    await tables.execute(database);
  },
};
