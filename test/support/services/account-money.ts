import { randomBytes, randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import {
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import { toEventMessage } from "../../../lib/events/event-message.ts";
import { type Log, silentLog } from "../../../lib/runtime/log.ts";
import { createAccount } from "../../../services/account/accounts/accounts.ts";
import { accountMigrations } from "../../../services/account/migrations.ts";
import type { HoldRequest } from "../../../services/account/money/holds.ts";
import { moveCredit } from "../../../services/account/money/ledger.ts";
import { createMoneyCounters } from "../../../services/account/money/money-totals.ts";
import type { SettlementOptions } from "../../../services/account/money/settlements.ts";
import type { AccountDatabase, AccountTables, LimitResetName } from "../../../services/account/store.ts";
import { createTestDatabase } from "../postgres/database.ts";

/** The schema of account on a database of its own. */
export interface MoneyDatabase {
  readonly url: string;
  readonly database: AccountDatabase;
  /** Another pool of connections, as another replica has it; closed with the rest. */
  connect(maxConnections?: number): AccountDatabase;
  close(): Promise<void>;
}

/** A fresh, migrated schema of account. */
export async function startMoneyDatabase(maxConnections = 8): Promise<MoneyDatabase> {
  const { url, drop } = await createTestDatabase();
  const { schema } = accountMigrations;
  const pools: AccountDatabase[] = [];
  const connect = (most = 8) => {
    const pool = connectDatabase<AccountTables>({ url, schema, log: silentLog, maxConnections: most });
    pools.push(pool);
    return pool;
  };
  const database = connect(maxConnections);
  await migrateToLatest(database, accountMigrations);
  return {
    url,
    database,
    connect,
    async close() {
      await Promise.all(pools.map((pool) => pool.destroy()));
      await drop();
    },
  };
}

/** Who is charged. */
export interface Payer {
  readonly accountId: string;
  readonly keyHash: string;
  /** The line of keys that the key belongs to. */
  readonly rateBucket: string;
}

/** What a payer has; amounts in nano-USD. */
export interface PayerOptions {
  readonly credit?: bigint;
  readonly limit?: bigint;
  readonly limitReset?: LimitResetName;
  readonly includeByok?: boolean;
}

/** An account with credit and a key of its own. */
export async function createPayer(
  database: AccountDatabase,
  { credit = 0n, ...key }: PayerOptions = {},
): Promise<Payer> {
  const { id: accountId } = await database.transaction().execute(async (transaction) => {
    const account = await createAccount(transaction, { kind: "personal", name: "a" });
    if (credit > 0n) {
      const grantId = randomUUID();
      await moveCredit(transaction, { accountId: account.id, amountNanoUsd: credit, moveId: grantId });
    }
    return account;
  });
  const keyHash = await addKey(database, accountId, key);
  return { accountId, keyHash, rateBucket: keyHash };
}

/** Another key of an account, in a line of its own unless one is named; its hash. */
export async function addKey(
  database: AccountDatabase,
  accountId: string,
  { limit, limitReset, includeByok = false, rateBucket }: PayerOptions & { rateBucket?: string } = {},
): Promise<string> {
  const hash = randomBytes(32).toString("hex");
  await database
    .insertInto("api_key")
    .values({
      hash,
      account_id: accountId,
      member_id: null,
      kind: "inference",
      scopes: ["speech"],
      name: "k",
      label: "sk-…",
      limit_nano_usd: limit ?? null,
      limit_reset: limitReset ?? null,
      include_byok_in_limit: includeByok,
      rate_limit_per_minute: null,
      rate_bucket: rateBucket ?? hash,
    })
    .execute();
  return hash;
}

/** A generation id that nobody used. */
export function newGenerationId(): string {
  return `gen-tts-${randomBytes(12).toString("hex")}`;
}

/** A reservation of this amount with a draft, for an hour unless given. */
export function holdRequest(
  payer: Pick<Payer, "accountId" | "keyHash">,
  amountNanoUsd: bigint,
  more: Partial<HoldRequest> = {},
): HoldRequest {
  const { generationId = newGenerationId(), deadline = new Date(Date.now() + 3_600_000) } = more;
  const { accountId, keyHash } = payer;
  const lost = lostEvent(payer, generationId, deadline);
  const draft = toEventMessage(lost).value;
  return { generationId, accountId, keyHash, amountNanoUsd, byokAmountNanoUsd: 0n, deadline, draft, ...more };
}

/** The event of a request that ended. */
export function realEvent(
  { accountId, keyHash }: Pick<Payer, "accountId" | "keyHash">,
  eventId: string,
  costNanoUsd: bigint,
  more: { byok?: boolean; listPriceNanoUsd?: bigint; endedMs?: number } = {},
): GenerationEvent {
  const { endedMs = Date.now(), listPriceNanoUsd = costNanoUsd, byok = false } = more;
  return create(GenerationEventSchema, {
    eventId,
    accountId,
    keyHash,
    endpointId: "0f9d1b6e-3a52-4c7b-9c52-5a6f0d6f7a10",
    revision: 1,
    outcome: Outcome.SUCCEEDED,
    costNanoUsd,
    listPriceNanoUsd,
    byok,
    startedAt: timestampFromMs(endedMs - 1000),
    endedAt: timestampFromMs(endedMs),
  });
}

/** The event of a request that was lost. */
export function lostEvent(
  payer: Pick<Payer, "accountId" | "keyHash">,
  eventId: string,
  deadline: Date,
): GenerationEvent {
  const endedMs = deadline.getTime();
  return Object.assign(realEvent(payer, eventId, 0n, { endedMs }), { revision: 0, outcome: Outcome.LOST });
}

/** What settling works with, counting from zero. */
export function settlementOptions(database: AccountDatabase, log: Log = silentLog): SettlementOptions {
  return { database, counters: createMoneyCounters(), log, unseenGraceMs: 30_000 };
}

/** Where an account's money is, nano-USD. */
export interface Money {
  readonly balance: bigint;
  readonly held: bigint;
  readonly charged: bigint;
}

/** Where an account's money is. */
export async function moneyOf(database: AccountDatabase, { accountId }: Pick<Payer, "accountId">) {
  return database
    .selectFrom("account")
    .select(["balance_nano_usd as balance", "held_nano_usd as held", "charged_nano_usd as charged"])
    .where("id", "=", accountId)
    .executeTakeFirstOrThrow() satisfies Promise<Money>;
}

/** What a line of keys has held and spent, by day and in all, nano-USD. */
export async function keyMoneyOf(database: AccountDatabase, { rateBucket }: Pick<Payer, "rateBucket">) {
  const sums = ["held_nano_usd as held", "spent_nano_usd as spent", "byok_nano_usd as byok"] as const;
  const days = await database
    .selectFrom("key_line_day")
    .select(["day", ...sums])
    .where("rate_bucket", "=", rateBucket)
    .orderBy("day")
    .execute();
  const line = await database
    .selectFrom("key_line")
    .select(sums)
    .where("rate_bucket", "=", rateBucket)
    .executeTakeFirst();
  return { days, line };
}

/** Moves what an account has held and spent to days that lie so much later, as if it had been then. */
export async function shiftDays(
  database: AccountDatabase,
  { accountId }: Pick<Payer, "accountId">,
  days: number,
): Promise<void> {
  await sql`UPDATE hold SET day = day + ${days}::int WHERE account_id = ${accountId}`.execute(database);
  // By way of a far future, so that no row meets another on its way.
  for (const step of [1_000_000 + days, -1_000_000]) {
    await sql`UPDATE key_line_day SET day = day + ${step}::int FROM key_line
      WHERE key_line.rate_bucket = key_line_day.rate_bucket AND account_id = ${accountId}`.execute(database);
  }
}

/** What in the schema contradicts itself: empty when every sum is the sum of its parts, to the nano. */
export async function faultsOfBooks(database: AccountDatabase): Promise<string[]> {
  const { rows } = await sql<{ fault: string }>`
    WITH holding AS (
      SELECT account_id, sum(amount_nano_usd) AS held FROM hold WHERE state = 'open' GROUP BY account_id
    ), book AS (
      SELECT account_id, sum(amount_nano_usd) FILTER (WHERE debit = 'customer' AND credit = 'revenue') AS charged,
        sum(CASE debit WHEN 'granted' THEN amount_nano_usd ELSE -amount_nano_usd END)
          FILTER (WHERE 'granted' IN (debit, credit)) AS granted
      FROM ledger_entry GROUP BY account_id
    ), debited AS (
      SELECT generation_id, sum(amount_nano_usd) AS amount FROM ledger_entry WHERE generation_id IS NOT NULL
      GROUP BY generation_id
    ), day_sums AS (
      SELECT rate_bucket, sum(held_nano_usd) AS held, sum(spent_nano_usd) AS spent, sum(byok_nano_usd) AS byok
      FROM key_line_day GROUP BY rate_bucket
    ), hold_sums AS (
      SELECT rate_bucket, day, sum(key_amount_nano_usd) FILTER (WHERE state = 'open') AS held, sum(cost_nano_usd) AS spent
      FROM hold WHERE state <> 'refused' AND rate_bucket IS NOT NULL GROUP BY rate_bucket, day
    )
    SELECT 'account ' || id || ': not the sum of its holds and its ledger' AS fault
    FROM account LEFT JOIN holding ON holding.account_id = id LEFT JOIN book ON book.account_id = id
    WHERE (held_nano_usd, charged_nano_usd, granted_nano_usd)
      <> (coalesce(holding.held, 0), coalesce(book.charged, 0), coalesce(book.granted, 0))
    UNION ALL
    SELECT 'hold ' || coalesce(id, generation_id) || ': its debit is not that of the ledger'
    FROM hold FULL JOIN debited ON generation_id = id
    WHERE id IS NULL OR debited_nano_usd <> coalesce(debited.amount, 0) OR debited_nano_usd <> cost_nano_usd
      OR (debited_nano_usd > 0 AND state <> 'settled')
    UNION ALL
    SELECT 'line ' || rate_bucket || ': not the sum of its days' FROM key_line LEFT JOIN day_sums USING (rate_bucket)
    WHERE (held_nano_usd, spent_nano_usd, byok_nano_usd)
      <> (coalesce(held, 0), coalesce(spent, 0), coalesce(byok, 0))
    UNION ALL
    SELECT 'line ' || rate_bucket || ' on ' || day || ': not the sum of its holds'
    FROM key_line_day FULL JOIN hold_sums USING (rate_bucket, day)
    WHERE (coalesce(held_nano_usd, 0), coalesce(spent_nano_usd, 0)) <> (coalesce(held, 0), coalesce(spent, 0))
    UNION ALL
    SELECT 'hold ' || id || ': open, or settled and unseen, with nothing to publish, or the reverse' FROM hold
    WHERE (state = 'open' OR (state = 'settled' AND NOT seen)) <> (publish_due_at IS NOT NULL)
      OR (publish_due_at IS NOT NULL AND event IS NULL)`.execute(database);
  return rows.map(({ fault }) => fault);
}
