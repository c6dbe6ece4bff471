import { sql } from "kysely";

/**
 * Closes holds, all in one transaction, and answers for each event, by its position from 1, `stored`, `unknown` (no
 * hold of that id and account) or `closed` (refused or released), with what it cost beyond its hold and what it cost
 * though its hold had been lost, nano-USD. `met` says that the events were read from the topic. An id may come twice.
 * A hold that was released when its `lost` event was on the topic already is lost all the same: every group reads that.
 *
 * Locks: holds by id, then what `count_closed` locks. Everything is decided by the locked row, read a row at a time.
 */
export const settleFunction = sql`
  CREATE FUNCTION settle(
    generation_ids text[], account_ids uuid[], revisions integer[], costs bigint[], byok_prices bigint[],
    events bytea[], met boolean, grace interval
  ) RETURNS TABLE ("position" bigint, outcome text, over_run bigint, late bigint) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $function$
  DECLARE
    held record;
    closed closed_hold[] := '{}';
  BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    FOR "position" IN
      SELECT asked.number FROM unnest(generation_ids) WITH ORDINALITY AS asked (id, number)
      ORDER BY asked.id COLLATE "C", asked.number
    LOOP
      SELECT id, account_id, rate_bucket, day, state, amount_nano_usd, key_amount_nano_usd, revision, seen INTO held
      FROM hold WHERE id = generation_ids["position"] FOR UPDATE;
      outcome := CASE
        WHEN held.account_id IS DISTINCT FROM account_ids["position"] THEN 'unknown'
        WHEN held.state IN ('released', 'refused') AND revisions["position"] > 0 THEN 'closed'
        ELSE 'stored'
      END;
      over_run := 0;
      late := 0;
      IF outcome <> 'stored' THEN
        NULL;
      ELSIF revisions["position"] > 0 AND held.state IN ('open', 'lost') THEN
        UPDATE hold SET state = 'settled', closed_at = now(), event = events["position"],
          revision = revisions["position"], cost_nano_usd = costs["position"], debited_nano_usd = costs["position"],
          seen = met, publish_due_at = CASE WHEN met THEN NULL ELSE now() + grace END, publish_count = 0
        WHERE id = held.id;
        IF held.state = 'open' THEN
          over_run := greatest(costs["position"] - held.amount_nano_usd, 0);
        ELSE
          late := costs["position"];
          held.amount_nano_usd := 0;
          held.key_amount_nano_usd := 0;
        END IF;
        closed := array_append(closed, ROW(held.account_id, held.rate_bucket, held.day, held.amount_nano_usd,
          held.key_amount_nano_usd, costs["position"], byok_prices["position"], held.id, revisions["position"]
        )::closed_hold);
      ELSIF met AND held.state = 'settled' AND held.revision = revisions["position"] AND NOT held.seen THEN
        UPDATE hold SET seen = true, publish_due_at = NULL WHERE id = held.id;
      ELSIF met AND held.state = 'open' THEN
        UPDATE hold SET state = 'lost', closed_at = now(), event = events["position"], revision = 0, seen = true,
          publish_due_at = NULL
        WHERE id = held.id;
        closed := array_append(closed, ROW(held.account_id, held.rate_bucket, held.day, held.amount_nano_usd,
          held.key_amount_nano_usd, 0, 0, held.id, 0)::closed_hold);
      ELSIF met AND held.state = 'released' AND held.day IS NOT NULL THEN
        UPDATE hold SET state = 'lost', event = events["position"], revision = 0, seen = true WHERE id = held.id;
      END IF;
      RETURN NEXT;
    END LOOP;
    IF closed <> '{}' THEN
      PERFORM count_closed(closed);
    END IF;
  END
  $function$;
`;

/**
 * Gives open holds back, and remembers ids never heard of as released, all in one transaction. A hold of another
 * account is left alone.
 *
 * Locks: holds by id, made where there are none, then what `count_closed` locks.
 */
export const releaseFunction = sql`
  CREATE FUNCTION release(generation_ids text[], account_ids uuid[]) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $function$
  DECLARE
    asked record;
    held record;
    closed closed_hold[] := '{}';
  BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    FOR asked IN
      SELECT id, account_id FROM unnest(generation_ids, account_ids) AS release (id, account_id)
      ORDER BY id COLLATE "C"
    LOOP
      INSERT INTO hold (id, account_id, state, deadline, closed_at)
      VALUES (asked.id, asked.account_id, 'released', now(), now())
      ON CONFLICT (id) DO NOTHING;
      CONTINUE WHEN FOUND;
      SELECT account_id, rate_bucket, day, state, amount_nano_usd, key_amount_nano_usd INTO held
      FROM hold WHERE id = asked.id FOR UPDATE;
      CONTINUE WHEN held.state IS DISTINCT FROM 'open' OR held.account_id <> asked.account_id;
      UPDATE hold SET state = 'released', closed_at = now(), event = NULL, publish_due_at = NULL WHERE id = asked.id;
      closed := array_append(closed, ROW(held.account_id, held.rate_bucket, held.day, held.amount_nano_usd,
        held.key_amount_nano_usd, 0, 0, asked.id, 0)::closed_hold);
    END LOOP;
    IF closed <> '{}' THEN
      PERFORM count_closed(closed);
    END IF;
  END
  $function$;
`;

/**
 * Takes closed holds off their account and their line of keys, on the day that they were held on, and debits what they
 * cost. Locks: lines of keys, accounts. A hold that moves no money locks nothing.
 */
export const countClosedFunction = sql`
  CREATE TYPE closed_hold AS (
    account_id uuid, rate_bucket text, day date, freed bigint, key_freed bigint, cost bigint, byok_price bigint,
    generation_id text, revision integer
  );

  CREATE FUNCTION count_closed(holds closed_hold[]) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $function$
  DECLARE
    moved record;
  BEGIN
    FOR moved IN
      SELECT rate_bucket, day, sum(key_freed)::bigint AS freed, sum(cost)::bigint AS cost,
        sum(byok_price)::bigint AS byok_price
      FROM unnest(holds) WHERE key_freed > 0 OR cost > 0 OR byok_price > 0
      GROUP BY rate_bucket, day ORDER BY rate_bucket, day
    LOOP
      UPDATE key_line SET held_nano_usd = held_nano_usd - moved.freed, spent_nano_usd = spent_nano_usd + moved.cost,
        byok_nano_usd = byok_nano_usd + moved.byok_price
      WHERE rate_bucket = moved.rate_bucket;
      UPDATE key_line_day SET held_nano_usd = held_nano_usd - moved.freed,
        spent_nano_usd = spent_nano_usd + moved.cost, byok_nano_usd = byok_nano_usd + moved.byok_price
      WHERE rate_bucket = moved.rate_bucket AND day = moved.day;
    END LOOP;
    FOR moved IN
      SELECT account_id, sum(freed)::bigint AS freed, sum(cost)::bigint AS cost
      FROM unnest(holds) WHERE freed > 0 OR cost > 0 GROUP BY account_id ORDER BY account_id
    LOOP
      UPDATE account SET held_nano_usd = held_nano_usd - moved.freed,
        charged_nano_usd = charged_nano_usd + moved.cost
      WHERE id = moved.account_id;
    END LOOP;
    INSERT INTO ledger_entry (account_id, debit, credit, amount_nano_usd, generation_id, revision)
    SELECT account_id, 'customer', 'revenue', cost, generation_id, revision FROM unnest(holds) WHERE cost > 0;
  END
  $function$;
`;
