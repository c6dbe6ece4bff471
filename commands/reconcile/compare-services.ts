import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import type { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import { consumeStream } from "../../lib/rpc/client.ts";
import { addDays } from "../../services/usage/day.ts";
import { type Compared, compareBooks, compareRequests, type DaySpan, type Difference } from "./compare.ts";
import { describeBills, sumBills } from "./vendor.ts";

/** Whose books are compared; their calls have time for long lists. */
export interface ReconciledServices {
  readonly account: Client<typeof AccountAdminService>;
  readonly usage: Client<typeof UsageAdminService>;
}

/** What a comparison came to. */
export interface Reconciliation {
  readonly compared: Compared;
  readonly differences: readonly Difference[];
}

/** Compares the requests of some days, the books of every account and the roll-ups of the days. */
export async function compareAll(services: ReconciledServices, days: DaySpan): Promise<Reconciliation> {
  const compared: Compared = { holds: 0, records: 0, open: 0, unseen: 0 };
  const differences: Difference[] = [];
  // A request ends at most a day before its deadline, and lost ones a little after it.
  const holds = listHolds(services.account, instant(days.from), instant(addDays(days.to, 2)));
  const records = listRecords(services.usage, instant(addDays(days.from, -1)), instant(addDays(days.to, 3)));
  for await (const difference of compareRequests(holds, records, days, compared))
    differences.push(difference);
  for await (const { books } of consumeStream((signal) => services.account.listBooks({}, { signal }))) {
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

/** What providers said that they bill beside our own counts, in lines, and how many of those differ. */
export async function sumVendors(usage: ReconciledServices["usage"], days: DaySpan, tolerance: number) {
  const records = listRecords(usage, instant(days.from), instant(addDays(days.to, 1)), true);
  return describeBills(await sumBills(records, days), tolerance);
}

function instant(day: string) {
  return timestampFromDate(new Date(`${day}T00:00:00Z`));
}

type Instant = ReturnType<typeof instant>;

async function* listHolds(client: ReconciledServices["account"], from: Instant, to: Instant) {
  for await (const { holds } of consumeStream((signal) => client.listHolds({ from, to }, { signal })))
    yield* holds;
}

async function* listRecords(
  client: ReconciledServices["usage"],
  from: Instant,
  to: Instant,
  withBilling = false,
) {
  for await (const { records } of consumeStream((signal) =>
    client.listUsageRecords({ from, to, withBilling }, { signal }),
  )) {
    yield* records;
  }
}
