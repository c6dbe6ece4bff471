/**
 * How long activity of the whole window takes, from roll-ups alone, for an account with 10 million records: by the
 * number of cells they fell into, which is what it depends on. One call at a time over a socket, and the query in it.
 * README.md says how to read it.
 */
import { parseArgs } from "node:util";
import { sql } from "kysely";
import { SeriesGroup, SeriesStep } from "../../gen/media/usage/v1/usage_pb.ts";
import { connectDatabase } from "../../lib/database/connect.ts";
import { migrateToLatest } from "../../lib/database/migrate.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { activityWindow, listActivity } from "../../services/usage/activity.ts";
import { dayOfMs } from "../../services/usage/day.ts";
import { usageMigrations } from "../../services/usage/migrations.ts";
import { noMember, type UsageDatabase, type UsageTables } from "../../services/usage/store.ts";
import { startEmbeddedPostgres } from "../../standalone/embedded-postgres.ts";
import { removeDataDirectory, temporaryDirectory } from "../../test/support/postgres/temporary-directory.ts";
import { testUuid } from "../../test/support/services/usage-events.ts";
import { quantileOf } from "../load.ts";
import { serveUsage } from "./serve-usage.ts";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "1000" },
    records: { type: "string", default: "10000000" },
    /** Endpoints × keys that are in use each day. */
    shapes: { type: "string", default: "10x5,20x20,20x50,20x200" },
  },
});
const calls = Number(values.calls);
const records = Number(values.records);
const shapes = values.shapes.split(",").map((shape) => shape.split("x").map(Number));
const days = 31;
const otherAccounts = 200;
const window = activityWindow(dayOfMs(Date.now()));

const dataDir = await temporaryDirectory();
const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog });
const { schema } = usageMigrations;
// Filling takes longer than a statement of the service may.
const url = `${postgres.url}?statement_timeout=0`;
const database = connectDatabase<UsageTables>({ url, schema, log: silentLog });
try {
  await migrateToLatest(database, usageMigrations);
  await sql`INSERT INTO naming VALUES (${noMember}, 'acme/voice', 'acme/voice-2030', 'Acme')`.execute(
    database,
  );
  await fillOthers(database);
  for (const [index, [endpoints = 0, keys = 0]] of shapes.entries()) {
    await benchShape(database, testUuid(1_000_000 + index), endpoints, keys);
  }
} finally {
  await database.destroy();
  await postgres.stop();
  await removeDataDirectory(dataDir);
}

/** Cells as the consumer leaves them: day after day, those of all accounts of a day beside each other. */
async function fillOthers(database: UsageDatabase): Promise<void> {
  await sql`
    INSERT INTO activity
    SELECT uuid(lpad(to_hex(account), 32, '0')), ${window.firstDay}::date + day, uuid(lpad(to_hex(endpoint), 32, '0')),
      sha256(int4send(account * 100 + key)), ${noMember}, ${noMember}, 100, 1000, 1000, 0, 1000000, 0, now()
    FROM generate_series(0, ${days - 1}) AS day, generate_series(1, ${otherAccounts}) AS account,
      generate_series(1, 20) AS endpoint, generate_series(1, 5) AS key`.execute(database);
}

/** An account's cells, rewritten once as roll-ups are, so that no page is as dense as it was filled. */
async function fillAccount(database: UsageDatabase, account: string, endpoints: number, keys: number) {
  const requests = Math.floor(records / (days * endpoints * keys));
  await sql`
    INSERT INTO activity
    SELECT ${account}, ${window.firstDay}::date + day, uuid(lpad(to_hex(endpoint), 32, '0')),
      sha256(int4send(key)), ${noMember}, ${noMember}, ${requests}, 1000, 1000, 0, endpoint * 1000000, 0, now()
    FROM generate_series(0, ${days - 1}) AS day, generate_series(1, ${endpoints}) AS endpoint,
      generate_series(1, ${keys}) AS key
    ORDER BY day, random()`.execute(database);
  await sql`UPDATE activity SET requests = requests + 1 WHERE account_id = ${account}`.execute(database);
  await sql`VACUUM ANALYZE activity`.execute(database);
}

async function benchShape(database: UsageDatabase, account: string, endpoints: number, keys: number) {
  await fillAccount(database, account, endpoints, keys);
  const { client, close } = await serveUsage(database, { accountId: account });
  const filter = { accountId: account, ...window, keyHash: undefined, memberId: undefined };
  const byModel = { step: SeriesStep.DAY, groupBy: SeriesGroup.MODEL };
  const cells = (days * endpoints * keys).toLocaleString("en");
  console.log(`${endpoints} endpoints × ${keys} keys × ${days} days: ${cells} cells`);
  print("  the call", await time(() => client.listActivity({})));
  print("  its query", await time(() => listActivity(database, filter)));
  print("  its series by day and model", await time(() => client.listActivitySeries(byModel)));
  print("  one day", await time(() => client.listActivity({ date: window.lastDay })));
  await close();
}

async function time(call: () => Promise<unknown>): Promise<readonly number[]> {
  for (let warming = 0; warming < 50; warming += 1) await call();
  const took: number[] = [];
  for (let done = 0; done < calls; done += 1) {
    const startedMs = performance.now();
    await call();
    took.push(performance.now() - startedMs);
  }
  return took.sort((a, b) => a - b);
}

function print(what: string, ascending: readonly number[]): void {
  const [p50 = 0, p99 = 0] = [0.5, 0.99].map((quantile) => quantileOf(ascending, quantile));
  console.log(`${what}: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
}
