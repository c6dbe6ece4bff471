/**
 * How long a page of generations takes over so many records (`--records`, 10 million), nine of ten of them one account's:
 * the first page, pages at random places, and pages of each filter and of several. One call at a time over a socket.
 */
import { parseArgs } from "node:util";
import { toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { GenerationEventSchema, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { connectDatabase } from "../../lib/database/connect.ts";
import { migrateToLatest } from "../../lib/database/migrate.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { usageMigrations } from "../../services/usage/migrations.ts";
import { noMember, type UsageDatabase, type UsageTables } from "../../services/usage/store.ts";
import { startEmbeddedPostgres } from "../../standalone/embedded-postgres.ts";
import { removeDataDirectory, temporaryDirectory } from "../../test/support/postgres/temporary-directory.ts";
import { testUuid, usageEvent } from "../../test/support/services/usage-events.ts";
import { quantileOf } from "../load.ts";
import { serveUsage } from "./serve-usage.ts";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "500" },
    records: { type: "string", default: "10000000" },
  },
});
const calls = Number(values.calls);
const records = Number(values.records);
const account = testUuid(1);
const spanMs = 31 * 86_400_000;
const endMs = Date.now();
/** Keys and sessions are asked for at random, so the names of all are made the same way here and there. */
const keyOf = "sha256(int4send((index % 200)::int))";

const dataDir = await temporaryDirectory();
const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog });
const { schema } = usageMigrations;
const database = connectDatabase<UsageTables>({
  url: `${postgres.url}?statement_timeout=0`,
  schema,
  log: silentLog,
});
try {
  await migrateToLatest(database, usageMigrations);
  const startedMs = performance.now();
  for (let from = 0; from < records; from += 500_000) {
    await fill(database, from, Math.min(from + 500_000, records));
  }
  await sql`VACUUM ANALYZE`.execute(database);
  const filledS = (performance.now() - startedMs) / 1000;
  console.log(`${records.toLocaleString("en")} records, filled in ${filledS.toFixed(0)} s`);
  await bench(database);
} finally {
  await database.destroy();
  await postgres.stop();
  await removeDataDirectory(dataDir);
}

/** Records in the order of their ends, as they come in; one event stands for all. */
async function fill(database: UsageDatabase, from: number, to: number): Promise<void> {
  const event = Buffer.from(toBinary(GenerationEventSchema, exampleEvent()));
  const source = sql`generate_series(${from}::bigint, ${to - 1}::bigint) AS index,
    LATERAL (SELECT 'gen-tts-' || lpad(to_hex(index), 16, '0') AS id,
      CASE WHEN index % 10 = 9 THEN uuid(lpad(to_hex(index % 200 + 16), 32, '0')) ELSE ${account}::uuid END AS account,
      to_timestamp((${endMs - spanMs} + index::float8 * ${spanMs / records}) / 1000) AS ended) AS made`;
  await sql`
    INSERT INTO record (event_id, revision, account_id, ended_at, endpoint_id, key_hash, member_id, naming_id,
      prompt_tokens, completion_tokens, reasoning_tokens, charged_nano_usd, byok_list_nano_usd, event)
    SELECT id, 1, account, ended, ${testUuid(100)}, ${sql.raw(keyOf)}, ${noMember}, ${testUuid(3)}, 0, 0, 0, 15000, 0,
      ${event}::bytea FROM ${source}`.execute(database);
  await sql`
    INSERT INTO listing (event_id, revision, account_id, ended_at, model, provider, key_hash, member_id, session_id,
      outcome, first_byte_ms)
    SELECT id, 1, account, ended, 'acme/voice-' || index % 30, 'provider-' || index % 7, ${sql.raw(keyOf)},
      uuid(lpad(to_hex(index % 50 + 1), 32, '0')), 'session-' || index / 20,
      CASE WHEN index % 101 = 0 THEN 2 ELSE 1 END, index % 5000 FROM ${source}`.execute(database);
}

function exampleEvent() {
  const attempt = { endpointId: testUuid(100), providerSlug: "acme", providerName: "Acme" };
  return usageEvent({
    firstByteAt: timestampFromMs(endMs),
    attempts: [{ ...attempt, outcome: Outcome.SUCCEEDED, providerStatus: 200, durationMs: 890n }],
  });
}

async function bench(database: UsageDatabase): Promise<void> {
  const { client, close } = await serveUsage(database, { accountId: account, organization: true });
  for (const [what, request] of Object.entries(await pagesToAsk(database))) {
    const took = await time(() => client.listGenerations(request()));
    const [p50 = 0, p99 = 0] = [0.5, 0.99].map((quantile) => quantileOf(took, quantile));
    console.log(`  ${what}: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
  }
  await close();
}

/** What is asked for, by what stands in the table of results. */
async function pagesToAsk(database: UsageDatabase): Promise<Readonly<Record<string, () => object>>> {
  const below = (most: number) => Math.floor(Math.random() * most);
  const anywhere = () => ({ to: timestampFromMs(endMs - below(spanMs)) });
  const { rows } = await sql<{ hash: string }>`
    SELECT encode(sha256(int4send(key)), 'hex') AS hash FROM generate_series(0, 199) AS key`.execute(
    database,
  );
  const hashOf = () => rows[below(rows.length)]?.hash ?? "";
  return {
    "the first page": () => ({}),
    "a page anywhere": anywhere,
    "100 anywhere": () => ({ ...anywhere(), pageSize: 100 }),
    model: () => ({ ...anywhere(), model: `acme/voice-${below(30)}` }),
    provider: () => ({ ...anywhere(), provider: `provider-${below(7)}` }),
    key: () => ({ ...anywhere(), apiKeyHash: hashOf() }),
    outcome: () => ({ ...anywhere(), outcome: Outcome.FAILED }),
    member: () => ({
      ...anywhere(),
      memberId: `00000000-0000-0000-0000-${(below(50) + 1).toString(16).padStart(12, "0")}`,
    }),
    session: () => ({ sessionId: `session-${below(records / 20)}` }),
    "model, outcome": () => ({ ...anywhere(), model: `acme/voice-${below(30)}`, outcome: Outcome.FAILED }),
    "model, key": () => ({ ...anywhere(), model: "acme/voice-1", apiKeyHash: rows[1]?.hash ?? "" }),
    "model, key that never used it": () => ({ model: "acme/voice-2", apiKeyHash: rows[1]?.hash ?? "" }),
    "a model that is not there": () => ({ model: "acme/none" }),
  };
}

async function time(call: () => Promise<unknown>): Promise<readonly number[]> {
  for (let warming = 0; warming < 20; warming += 1) await call();
  const took: number[] = [];
  for (let done = 0; done < calls; done += 1) {
    const startedMs = performance.now();
    await call();
    took.push(performance.now() - startedMs);
  }
  return took.sort((a, b) => a - b);
}
