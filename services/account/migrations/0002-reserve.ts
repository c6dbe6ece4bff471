import { sql } from "kysely";

/**
 * Decides reservations, all in one transaction, and answers `granted`, `closed`, `credits`, `key_limit` or `too_late`
 * for each, in their order. Ids must differ.
 *
 * Locks: new holds by id, lines of keys, accounts. A hold is written as open at once, so that a copy of the same id
 * waits for what is decided here; refusals overwrite theirs. A key that does not exist or is another account's, and an
 * account that does not exist, have no credit.
 *
 * Tables are read a row at a time, by key: a plan for sets of rows, made while a table is empty, would be kept.
 */
export const reserveFunction = sql`
  CREATE FUNCTION reserve(
    generation_ids text[], account_ids uuid[], key_hashes text[], amounts bigint[], byok_amounts bigint[],
    deadlines timestamptz[], drafts bytea[], grace interval
  ) RETURNS text[] LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $function$
  DECLARE
    today CONSTANT date := (now() AT TIME ZONE 'UTC')::date;
    made text[];
    lines text[];
    line_added bigint[] := '{}';
    accounts uuid[];
    account_free bigint[] := '{}';
    account_added bigint[] := '{}';
    free bigint;
    asked record;
    outcome text;
    outcomes text[] := '{}';
  BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    WITH made_hold AS (
      INSERT INTO hold (id, account_id, state, rate_bucket, day, amount_nano_usd, key_amount_nano_usd, deadline, event,
        publish_due_at)
      SELECT reservation.id, reservation.account_id, 'open', rate_bucket, today, amount,
        amount + CASE WHEN include_byok_in_limit THEN byok_amount ELSE 0 END, deadline, draft, deadline + grace
      FROM unnest(generation_ids, account_ids, key_hashes, amounts, byok_amounts, deadlines, drafts)
        AS reservation (id, account_id, key_hash, amount, byok_amount, deadline, draft)
      LEFT JOIN LATERAL (
        SELECT rate_bucket, include_byok_in_limit FROM api_key
        WHERE hash = key_hash AND api_key.account_id = reservation.account_id LIMIT 1
      ) AS key ON true
      ORDER BY reservation.id COLLATE "C"
      ON CONFLICT (id) DO NOTHING
      RETURNING id, account_id, rate_bucket
    )
    SELECT array_agg(id), array_agg(DISTINCT rate_bucket) FILTER (WHERE rate_bucket IS NOT NULL),
      array_agg(DISTINCT account_id)
    INTO made, lines, accounts FROM made_hold;

    FOR i IN 1 .. coalesce(cardinality(lines), 0) LOOP
      PERFORM FROM key_line WHERE rate_bucket = lines[i] FOR NO KEY UPDATE;
      IF NOT FOUND THEN
        INSERT INTO key_line (rate_bucket, account_id)
        SELECT rate_bucket, account_id FROM api_key WHERE hash = ANY (key_hashes) AND rate_bucket = lines[i] LIMIT 1
        ON CONFLICT (rate_bucket) DO NOTHING;
        PERFORM FROM key_line WHERE rate_bucket = lines[i] FOR NO KEY UPDATE;
      END IF;
      line_added[i] := 0;
    END LOOP;
    FOR i IN 1 .. coalesce(cardinality(accounts), 0) LOOP
      SELECT balance_nano_usd - held_nano_usd INTO free FROM account WHERE id = accounts[i] FOR NO KEY UPDATE;
      account_free[i] := free;
      account_added[i] := 0;
    END LOOP;

    FOR asked IN
      SELECT hold.*, hold.id = ANY (made) AS is_new, room, array_position(lines, hold.rate_bucket) AS line,
        array_position(accounts, hold.account_id) AS account
      FROM unnest(generation_ids, account_ids, key_hashes) WITH ORDINALITY
        AS reservation (id, account_id, key_hash, position)
      LEFT JOIN LATERAL (
        SELECT id, account_id, rate_bucket, state, refusal, deadline, amount_nano_usd, key_amount_nano_usd FROM hold
        WHERE hold.id = reservation.id AND hold.account_id = reservation.account_id LIMIT 1
      ) AS hold ON true
      LEFT JOIN LATERAL (
        SELECT CASE WHEN limit_nano_usd IS NOT NULL THEN limit_nano_usd - used_of_key(api_key, today) END AS room
        FROM api_key WHERE hash = key_hash LIMIT 1
      ) AS key ON true
      ORDER BY position
    LOOP
      outcome := CASE
        WHEN asked.is_new IS NOT TRUE THEN
          CASE asked.state WHEN 'open' THEN 'granted' WHEN 'refused' THEN asked.refusal ELSE 'closed' END
        WHEN asked.deadline <= clock_timestamp() THEN 'too_late'
        WHEN asked.line IS NULL OR account_free[asked.account] IS NULL THEN 'credits'
        WHEN asked.key_amount_nano_usd > asked.room - line_added[asked.line] THEN 'key_limit'
        WHEN asked.amount_nano_usd > account_free[asked.account] - account_added[asked.account] THEN 'credits'
        ELSE 'granted'
      END;
      outcomes := array_append(outcomes, outcome);
      IF asked.is_new AND outcome = 'granted' THEN
        line_added[asked.line] := line_added[asked.line] + asked.key_amount_nano_usd;
        account_added[asked.account] := account_added[asked.account] + asked.amount_nano_usd;
      ELSIF asked.is_new THEN
        UPDATE hold SET state = 'refused', refusal = outcome, closed_at = now(), event = NULL, publish_due_at = NULL
        WHERE id = asked.id;
      END IF;
    END LOOP;

    FOR i IN 1 .. cardinality(line_added) LOOP
      INSERT INTO key_line_day AS used (rate_bucket, day, held_nano_usd) VALUES (lines[i], today, line_added[i])
      ON CONFLICT (rate_bucket, day) DO UPDATE SET held_nano_usd = used.held_nano_usd + excluded.held_nano_usd
        WHERE excluded.held_nano_usd > 0;
      UPDATE key_line SET held_nano_usd = held_nano_usd + line_added[i]
      WHERE rate_bucket = lines[i] AND line_added[i] > 0;
    END LOOP;
    FOR i IN 1 .. cardinality(account_added) LOOP
      UPDATE account SET held_nano_usd = held_nano_usd + account_added[i]
      WHERE id = accounts[i] AND account_added[i] > 0;
    END LOOP;
    RETURN outcomes;
  END
  $function$;
`;

/** What counts against a key's limit in the limit's period that this UTC day is in: held and spent by its whole line. */
export const usedOfKeyFunction = sql`
  CREATE FUNCTION used_of_key(key api_key, today date) RETURNS bigint LANGUAGE plpgsql STABLE AS $function$
  DECLARE
    period text := CASE key.limit_reset WHEN 'daily' THEN 'day' WHEN 'weekly' THEN 'week' WHEN 'monthly' THEN 'month' END;
    used bigint;
  BEGIN
    IF period IS NULL THEN
      SELECT held_nano_usd + spent_nano_usd + CASE WHEN key.include_byok_in_limit THEN byok_nano_usd ELSE 0 END INTO used
      FROM key_line WHERE rate_bucket = key.rate_bucket;
    ELSE
      SELECT sum(held_nano_usd + spent_nano_usd + CASE WHEN key.include_byok_in_limit THEN byok_nano_usd ELSE 0 END)
      INTO used FROM key_line_day
      WHERE rate_bucket = key.rate_bucket AND day >= date_trunc(period, today::timestamp)::date;
    END IF;
    RETURN coalesce(used, 0);
  END
  $function$;
`;
