import { setTimeout as delay } from "node:timers/promises";
import { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { UsageAdminService } from "../../../gen/media/usage/v1/usage_admin_service_pb.ts";
import { addDays, isDay } from "../../../services/usage/day.ts";
import type { DaySpan } from "../../reconcile/compare.ts";
import {
  compareAll,
  type ReconciledServices,
  type Reconciliation,
  sumVendors,
} from "../../reconcile/compare-services.ts";
import { writeReconcileMetrics } from "../../reconcile/metrics.ts";
import type { Input, Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { wrongUsage } from "../failure.ts";
import type { Output } from "../output.ts";

const listTimeoutMs = 900_000;
const pauseMs = 500;
const maxPrinted = 1000;
const maxWaitS = 3600;

/** What the bills stand on. */
export const books: Noun = {
  name: "books",
  summary: "holds, ledger, records and sums: is the bill right?",
  verbs: [
    {
      name: "reconcile",
      summary: "compare the books of account with those of usage, request by request",
      options: [
        { name: "from", value: "YYYY-MM-DD", help: "first UTC day; yesterday unless given" },
        { name: "to", value: "YYYY-MM-DD", help: "last UTC day; today unless given" },
        { name: "wait", value: "seconds", help: "given to what is on its way; 10 unless given" },
        {
          name: "metrics-file",
          value: "path",
          help: "where to write the counts for Prometheus (a name that ends in .prom)",
        },
        { name: "vendor", help: "compare with what providers said that they bill" },
        {
          name: "tolerance",
          value: "percent",
          help: "by how much sums may differ with --vendor; 1 unless given",
        },
      ],
      details: `Prints a line for each difference, for the books of every account too, and exits 1 when there is one.
--vendor lays what providers said that they bill (characters, cost; those that say nothing are listed so) beside our own
counts and list prices, by provider and model. What the vendors' invoices say is for people to compare.`,
      run: reconcile,
    },
  ],
};

async function reconcile(input: Input, cli: Cli): Promise<Output> {
  const today = new Date().toISOString().slice(0, 10);
  const days = readDays(input, { from: addDays(today, -1), to: today });
  const waitS = Number(input.text("wait") ?? "10");
  if (!(waitS >= 0 && waitS <= maxWaitS)) throw wrongUsage(`--wait takes seconds, 0 to ${maxWaitS}`);
  const services: ReconciledServices = {
    account: await cli.client(AccountAdminService, "account", listTimeoutMs),
    usage: await cli.client(UsageAdminService, "usage", listTimeoutMs),
  };
  if (input.flag("vendor")) return compareVendors(services, days, Number(input.text("tolerance") ?? "1"));
  const byMs = Date.now() + waitS * 1000;
  let found = await compareAll(services, days);
  while (found.differences.length > 0 && Date.now() < byMs) {
    await delay(pauseMs);
    found = await compareAll(services, days);
  }
  const path = input.text("metrics-file");
  if (path !== undefined) await writeReconcileMetrics(path, found.compared, found.differences.length);
  return describe(found, days);
}

function describe({ compared, differences }: Reconciliation, days: DaySpan): Output {
  const { holds, records, open, unseen } = compared;
  const waiting = `${open} open, ${unseen} not met on the usage topic yet`;
  const span = `${days.from} to ${days.to}`;
  const sum = `${span}: ${holds} holds (${waiting}), ${records} records, ${differences.length} differences`;
  return {
    lines: [...differences.slice(0, maxPrinted).map(({ subject, what }) => `${subject}\t${what}`), sum],
    data: { ...days, ...compared, differences },
    isWrong: differences.length > 0,
  };
}

async function compareVendors(
  services: ReconciledServices,
  days: DaySpan,
  tolerance: number,
): Promise<Output> {
  if (!(tolerance >= 0 && tolerance <= 100)) throw wrongUsage("--tolerance takes percent, 0 to 100");
  const { lines, differing } = await sumVendors(services.usage, days, tolerance);
  const sum = `${days.from} to ${days.to}: ${lines.length} models of providers, ${differing} differ`;
  return { lines: [...lines, sum], data: { ...days, lines, differing }, isWrong: differing > 0 };
}

/** The days that were asked for, both included. Throws CommandFailure. */
export function readDays(input: Input, otherwise: Partial<DaySpan>): DaySpan {
  const from = input.text("from") ?? otherwise.from;
  if (from === undefined) throw wrongUsage("--from is required; --help tells more");
  const to = input.text("to") ?? otherwise.to ?? from;
  if (!isDay(from) || !isDay(to)) throw wrongUsage("--from and --to take a date written YYYY-MM-DD");
  if (to < from) throw wrongUsage("--to lies before --from");
  return { from, to };
}
