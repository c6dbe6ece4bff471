import { setTimeout as delay } from "node:timers/promises";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { AccountAdminService } from "../gen/media/account/v1/account_admin_service_pb.ts";
import { UsageAdminService } from "../gen/media/usage/v1/usage_admin_service_pb.ts";
import { consumeStream, createRemoteTransport, createRpcClient } from "../lib/rpc/client.ts";
import { httpUrlVar, readConfig } from "../lib/runtime/config.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { addDays, isDay } from "../services/usage/day.ts";
import { adminSpec, operatorToken } from "./admin/client.ts";
import { failureLine, readOptions, runCommand } from "./command-line.ts";
import {
  type Compared,
  compareBooks,
  compareRequests,
  type DaySpan,
  type Difference,
} from "./reconcile/compare.ts";
import { writeReconcileMetrics } from "./reconcile/metrics.ts";
import { describeBills, sumBills } from "./reconcile/vendor.ts";

const usage = `usage: npm run reconcile -- [--from <YYYY-MM-DD>] [--to <YYYY-MM-DD>] [--wait <seconds>] [--operator <name>]
                            [--metrics-file <path>]
       npm run reconcile -- --vendor [--from …] [--to …] [--tolerance <percent>] [--operator <name>]

Is the bill right? Compares the holds and the ledger of account with the records and roll-ups of usage, request by
request, for the UTC days of the span (yesterday and today unless given), and the books of every account. Prints a line
for each difference and exits 1 when there is one. What is on its way is given --wait seconds (10) to arrive.
--vendor compares instead what providers said that they bill (characters, cost; those that say nothing are listed so)
with our own counts and list prices, by provider and model, and exits 1 where sums are more than --tolerance (1) percent
apart. What the vendors' invoices say is for people to compare.
--metrics-file writes the counts for Prometheus, as its textfile collector reads them (a name that ends in .prom).
Environment: ACCOUNT_URL and USAGE_URL (http://localhost:8081), ADMIN_KEY_FILE (DATA_DIR/keys/admin.jwk).`;

const options = {
  from: { type: "string" },
  to: { type: "string" },
  wait: { type: "string", default: "10" },
  operator: { type: "string" },
  "metrics-file": { type: "string" },
  vendor: { type: "boolean", default: false },
  tolerance: { type: "string", default: "1" },
  help: { type: "boolean", default: false },
} as const;

const listTimeoutMs = 900_000;
const pauseMs = 500;
const maxPrinted = 1000;

interface Services {
  readonly account: Client<typeof AccountAdminService>;
  readonly usage: Client<typeof UsageAdminService>;
}

await runCommand(
  () => {
    const asked = readOptions(options);
    return asked.help ? console.log(usage) : run(asked);
  },
  (thrown) => failureLine(thrown instanceof DomainError ? new StartError(thrown.message) : thrown),
);

async function run(asked: ReturnType<typeof readOptions<typeof options>>): Promise<number> {
  const today = new Date().toISOString().slice(0, 10);
  const { from = addDays(today, -1), to = today } = asked;
  if (!isDay(from) || !isDay(to)) throw new StartError("--from and --to take a date written YYYY-MM-DD");
  if (to < from) throw new StartError("--to lies before --from");
  const waitS = Number(asked.wait);
  if (!(waitS >= 0 && waitS <= 3600)) throw new StartError("--wait takes seconds, 0 to 3600");
  const services = await connect(asked.operator);
  if (asked.vendor) return await compareVendors(services.usage, { from, to }, Number(asked.tolerance));
  const byMs = Date.now() + waitS * 1000;
  for (;;) {
    const { compared, differences } = await compare(services, { from, to });
    if (differences.length > 0 && Date.now() < byMs) {
      await delay(pauseMs);
      continue;
    }
    for (const { subject, what } of differences.slice(0, maxPrinted)) console.log(`${subject}\t${what}`);
    console.log(summary(compared, differences.length, { from, to }));
    const path = asked["metrics-file"];
    if (path !== undefined) await writeReconcileMetrics(path, compared, differences.length);
    return differences.length === 0 ? 0 : 1;
  }
}

async function compareVendors(usage: Services["usage"], days: DaySpan, tolerance: number): Promise<number> {
  if (!(tolerance >= 0 && tolerance <= 100)) throw new StartError("--tolerance takes percent, 0 to 100");
  const records = listRecords(usage, instant(days.from), instant(addDays(days.to, 1)), true);
  const { lines, differing } = describeBills(await sumBills(records, days), tolerance);
  for (const line of lines) console.log(line);
  console.log(`${days.from} to ${days.to}: ${lines.length} models of providers, ${differing} differ`);
  return differing === 0 ? 0 : 1;
}

async function connect(operator: string | undefined): Promise<Services> {
  const config = readConfig({ ...adminSpec, USAGE_URL: httpUrlVar({ default: undefined }) });
  const local = `http://localhost:${config.RPC_PORT}`;
  const transport = async (audience: "account" | "usage", url: string | undefined) =>
    createRemoteTransport({
      baseUrl: url ?? local,
      interceptors: [await operatorToken(audience, operator, config)],
      defaultTimeoutMs: listTimeoutMs,
    });
  return {
    account: createRpcClient(AccountAdminService, await transport("account", config.ACCOUNT_URL)),
    usage: createRpcClient(UsageAdminService, await transport("usage", config.USAGE_URL)),
  };
}

async function compare(services: Services, days: DaySpan) {
  const compared: Compared = { holds: 0, records: 0, open: 0, unseen: 0 };
  const differences: Difference[] = [];
  // A request ends at most a day before its deadline, and lost ones a little after it.
  const holds = listHolds(services.account, instant(days.from), instant(addDays(days.to, 2)));
  const records = listRecords(services.usage, instant(addDays(days.from, -1)), instant(addDays(days.to, 3)));
  for await (const difference of compareRequests(holds, records, days, compared))
    differences.push(difference);
  for await (const { books } of consumeStream((signal) =>
    services.account.listBooks({}, { signal, timeoutMs: listTimeoutMs }),
  )) {
    differences.push(...books.flatMap(compareBooks));
  }
  const { days: rebuilt } = await services.usage.rebuildActivity({
    fromDate: days.from,
    toDate: days.to,
    dryRun: true,
  });
  for (const { date, complete, differingCells } of rebuilt) {
    if (!complete || differingCells === 0) continue;
    differences.push({ subject: date, what: `${differingCells} roll-up cells differ from their records` });
  }
  return { compared, differences };
}

function instant(day: string) {
  return timestampFromDate(new Date(`${day}T00:00:00Z`));
}

async function* listHolds(client: Services["account"], from: ReturnType<typeof instant>, to: typeof from) {
  for await (const { holds } of consumeStream((signal) => client.listHolds({ from, to }, { signal })))
    yield* holds;
}

async function* listRecords(
  client: Services["usage"],
  from: ReturnType<typeof instant>,
  to: typeof from,
  withBilling = false,
) {
  for await (const { records } of consumeStream((signal) =>
    client.listUsageRecords({ from, to, withBilling }, { signal }),
  )) {
    yield* records;
  }
}

function summary({ holds, records, open, unseen }: Compared, count: number, { from, to }: DaySpan): string {
  const waiting = `${open} open, ${unseen} not met on the usage topic yet`;
  return `${from} to ${to}: ${holds} holds (${waiting}), ${records} records, ${count} differences`;
}
