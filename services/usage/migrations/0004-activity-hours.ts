import { sql } from "kysely";
import { sqlMigration } from "../../../lib/database/migrate.ts";

/** The lines that the table of amounts got: what did not succeed, and the histogram of first bytes. */
const counts = sql.raw(
  `
  errors first_byte_100 first_byte_200 first_byte_400 first_byte_800 first_byte_1600 first_byte_3200 first_byte_6400
  first_byte_12800 first_byte_25600 first_byte_51200 first_byte_beyond`
    .trim()
    .split(/\s+/)
    .map((name) => `ADD ${name} bigint NOT NULL DEFAULT 0`)
    .join(", "),
);

/**
 * Sums by hour beside those by day, and more to sum. What was recorded before is counted by the catch-up that the listing
 * began: its days are named once more, those on which the release before may go on writing, too.
 */
export const activityHours = sqlMigration(
  sql`ALTER TABLE activity ${counts}`,
  sql`
  -- As activity, for the last days alone.
  CREATE TABLE activity_hour (
    account_id uuid NOT NULL,
    -- When the hour begins.
    hour timestamptz NOT NULL,
    endpoint_id uuid NOT NULL,
    key_hash bytea NOT NULL,
    member_id uuid NOT NULL,
    naming_id uuid NOT NULL REFERENCES naming,
    requests bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    charged_nano_usd bigint NOT NULL,
    byok_list_nano_usd bigint NOT NULL,
    last_ended_at timestamptz,
    PRIMARY KEY (account_id, hour, endpoint_id, key_hash, member_id, naming_id)
  ) WITH (fillfactor = 70)`,
  sql`ALTER TABLE activity_hour ${counts}`,
  sql`CREATE INDEX activity_hour_by_hour ON activity_hour (hour)`,
  // Sums by hour of earlier days are pruned, and nothing is added to them any more.
  sql`ALTER TABLE retention ADD hours_kept_from date NOT NULL DEFAULT '1970-01-01'`,
  sql`
  INSERT INTO catch_up
    SELECT generate_series((min(ended_at) AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 2, '1 day')
    FROM record HAVING min(ended_at) IS NOT NULL
    ON CONFLICT DO NOTHING`,
);
