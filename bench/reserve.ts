/**
 * Reservations and settlements a second on the embedded PostgreSQL, each durable before it counts: on one account, whose
 * row they all queue for, and on many; called one by one, and coalesced as processes that generate do. The yardstick
 * beside them is the least that holding credit could be: one update of the account's row, committed.
 */
import { parseArgs } from "node:util";
import { sql } from "kysely";
import type { GenerationEvent } from "../gen/media/event/v1/generation_event_pb.ts";
import { connectDatabase } from "../lib/database/connect.ts";
import { migrateToLatest } from "../lib/database/migrate.ts";
import { BatchCall } from "../lib/runtime/batch-call.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { accountMigrations } from "../services/account/migrations.ts";
import { type HoldRequest, reserveCredit } from "../services/account/money/holds.ts";
import { settleReported } from "../services/account/money/settlements.ts";
import type { AccountDatabase, AccountTables } from "../services/account/store.ts";
import { spawnOwner } from "../test/support/postgres/owner-process.ts";
import { temporaryDirectory } from "../test/support/postgres/temporary-directory.ts";
import {
  createPayer,
  faultsOfBooks,
  holdRequest,
  type Payer,
  realEvent,
  settlementOptions,
} from "../test/support/services/account-money.ts";
import { quantileOf } from "./load.ts";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "4000" },
    accounts: { type: "string", default: "64" },
    connections: { type: "string", default: "8" },
    limit: { type: "boolean", default: false },
  },
});
const calls = Number(values.calls);
const heldNanoUsd = 1000n;
const costNanoUsd = 900n;

interface Rates {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** How an item is called: alone, or with what is due at the same moment. */
type Caller = <I, O>(run: (items: readonly I[]) => Promise<readonly O[]>) => (item: I) => Promise<unknown>;

const callers: Readonly<Record<string, Caller>> = {
  single: (run) => (item) => run([item]),
  coalesced: (run) => {
    const batches = new BatchCall({ run, maxItems: 256, maxInFlight: 4 });
    return (item) => batches.call(item);
  },
};

async function measure<I>(items: readonly I[], concurrency: number, call: (item: I) => Promise<unknown>) {
  const latencies: number[] = [];
  let next = 0;
  const startedMs = performance.now();
  const worker = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) {
      const calledMs = performance.now();
      await call(item);
      latencies.push(performance.now() - calledMs);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const seconds = (performance.now() - startedMs) / 1000;
  latencies.sort((a, b) => a - b);
  return {
    perSecond: items.length / seconds,
    p50Ms: quantileOf(latencies, 0.5),
    p99Ms: quantileOf(latencies, 0.99),
  };
}

async function measureMoney(
  database: AccountDatabase,
  payers: readonly Payer[],
  concurrency: number,
  caller: Caller,
): Promise<{ bare: Rates; reserve: Rates; settle: Rates }> {
  const payerOf = (index: number) => payers[index % payers.length] as Payer;
  const bare = await measure(
    Array.from({ length: calls }, (_, index) => payerOf(index)),
    concurrency,
    (payer) =>
      sql`UPDATE account SET held_nano_usd = held_nano_usd WHERE id = ${payer.accountId}`.execute(database),
  );
  const requests = Array.from({ length: calls }, (_, index) => holdRequest(payerOf(index), heldNanoUsd));
  const settling = settlementOptions(database);
  const reserveAll = async (items: readonly HoldRequest[]) => {
    const decisions = await reserveCredit(database, items, 300_000);
    if (decisions.some((decision) => decision !== "granted")) throw new Error(`refused: ${decisions}`);
    return decisions;
  };
  const reserve = await measure(requests, concurrency, caller(reserveAll));
  const events = requests.map((request) => realEvent(request, request.generationId, costNanoUsd));
  const settle = await measure(
    events,
    concurrency,
    caller((items: readonly GenerationEvent[]) => settleReported(settling, items)),
  );
  return { bare, reserve, settle };
}

function show({ perSecond, p50Ms, p99Ms }: Rates): string {
  return `${perSecond.toFixed(0).padStart(7)}/s ${p50Ms.toFixed(2).padStart(6)} ${p99Ms.toFixed(2).padStart(6)}`;
}

async function run(database: AccountDatabase): Promise<void> {
  const credit = 10n ** 15n;
  const limited = values.limit ? { limit: credit, limitReset: "monthly" as const } : {};
  const payers: Payer[] = [];
  for (let count = Number(values.accounts); count > 0; count--) {
    payers.push(await createPayer(database, { credit, ...limited }));
  }
  await measureMoney(database, payers, 8, callers.single as Caller);
  const columns = ["yardstick", "reserve", "settle"].map((name) =>
    `${name.padStart(8)} p50 ms p99 ms`.padStart(24),
  );
  console.log(`accounts callers calls    ${columns.join("")}`);
  for (const accounts of [1, payers.length]) {
    for (const concurrency of [1, 16, 64]) {
      for (const [name, caller] of Object.entries(callers)) {
        const rates = await measureMoney(database, payers.slice(0, accounts), concurrency, caller);
        const cells = [`${accounts}`.padStart(8), `${concurrency}`.padStart(7), name.padEnd(9)];
        console.log([...cells, show(rates.bare), show(rates.reserve), show(rates.settle)].join(" "));
      }
    }
  }
  const faults = await faultsOfBooks(database);
  if (faults.length > 0) throw new Error(`the books contradict themselves: ${faults.join("; ")}`);
}

const postgres = spawnOwner({ dataDir: await temporaryDirectory(), temporary: true });
try {
  const database = connectDatabase<AccountTables>({
    url: await postgres.url,
    schema: accountMigrations.schema,
    log: silentLog,
    maxConnections: Number(values.connections),
  });
  await migrateToLatest(database, accountMigrations);
  await run(database);
  await database.destroy();
} finally {
  await postgres.end();
}
