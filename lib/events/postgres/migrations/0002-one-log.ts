import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

const columns = sql`
  ALTER TABLE topic
    -- Short, for the log.
    ADD COLUMN id integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    -- The earliest message that is kept; everything before is deleted.
    ADD COLUMN first_offset bigint NOT NULL DEFAULT 0,
    -- What the next message gets. Whoever appends holds this row's lock until it has committed, so numbers become
    -- visible in their order and without gaps.
    ADD COLUMN next_offset bigint NOT NULL DEFAULT 0,
    -- When the last message was appended; never goes back.
    ADD COLUMN appended_at timestamptz NOT NULL DEFAULT '-infinity',
    ADD CHECK (next_offset >= first_offset);
  ALTER TABLE topic SET (fillfactor = 50);

  -- Topics are never deleted; a foreign key would only cost each append a check for each message.
  CREATE TABLE log (
    topic_id integer NOT NULL,
    message_offset bigint NOT NULL,
    appended_at timestamptz NOT NULL,
    -- UTF-8. Not text and jsonb, which can't hold every string.
    key bytea NOT NULL,
    headers json NOT NULL,
    value bytea NOT NULL,
    -- Groups that had finished with it when partitions were merged; null since.
    finished_by integer[],
    PRIMARY KEY (topic_id, message_offset)
  );

  -- The first message that the group has not finished with.
  ALTER TABLE consumer_group ADD COLUMN next_offset bigint NOT NULL DEFAULT 0;
  ALTER TABLE consumer_group SET (fillfactor = 50);
`;

/** One behind the other as they were appended, so those of a partition keep their order. */
const messages = sql`
  UPDATE topic SET first_offset = merged.first_offset, next_offset = merged.first_offset,
    appended_at = merged.appended_at
  FROM (SELECT topic, sum(first_offset)::bigint AS first_offset, max(appended_at) AS appended_at
    FROM partition GROUP BY topic) AS merged
  WHERE name = merged.topic;

  INSERT INTO log (topic_id, message_offset, appended_at, key, headers, value, finished_by)
  SELECT topic.id, topic.first_offset - 1 + row_number() OVER (
      PARTITION BY topic.id ORDER BY message.appended_at, partition.number, message.message_offset),
    message.appended_at, key, headers, value,
    (SELECT array_agg(group_id) FROM group_partition AS place
      WHERE place.partition_id = partition.id AND place.next_offset > message.message_offset)
  FROM message JOIN partition ON partition.id = message.partition_id JOIN topic ON topic.name = partition.topic;

  UPDATE topic SET next_offset = ends.next_offset
  FROM (SELECT topic_id, max(message_offset) + 1 AS next_offset FROM log GROUP BY topic_id) AS ends
  WHERE id = ends.topic_id;
`;

const places = sql`
  UPDATE consumer_group SET next_offset = coalesce(
    (SELECT min(message_offset) FROM log
      WHERE topic_id = topic.id AND NOT consumer_group.id = ANY (coalesce(finished_by, '{}'))),
    topic.next_offset)
  FROM topic WHERE topic.name = consumer_group.topic;

  DROP TABLE group_partition, member, message, partition;
`;

/** One log for each topic in place of partitions, and one place in it for each group. The release before can't use it. */
export const oneLog: Migration = {
  async up(database: Kysely<unknown>) {
    for (const step of [columns, messages, places]) await step.execute(database);
  },
};
