import { randomUUID } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HoldSummary } from "../../gen/media/account/v1/account_admin_pb.ts";
import { parseUsd } from "../../lib/money/nano-usd.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import {
  type AdminAction,
  type AdminOptions,
  type AdminOutput,
  accountOf,
  countOf,
  longCallTimeoutMs,
  resealOutput,
  usd,
} from "./action.ts";
import type { AdminClient } from "./client.ts";

const dayMs = 86_400_000;
const maxHolds = 100_000;

/** The operator's commands about credit and what is sealed. */
export const creditActions: Readonly<Record<string, AdminAction>> = {
  "credit grant": {
    options: ["account", "id", "note"],
    positionals: ["account", "usd"],
    usage: "[<account>] <usd> [--id <id>] [--note <text>]",
    run: grantCredit,
  },
  "holds list": {
    options: ["from", "to", "limit"],
    usage: "[--from <instant>] [--to <instant>] [--limit <n>]",
    run: listHolds,
  },
  "provider-keys reseal": {
    options: [],
    usage: "",
    async run(client) {
      return resealOutput(await client.resealProviderKeys({}, { timeoutMs: longCallTimeoutMs }));
    },
  },
};

async function grantCredit(client: AdminClient["rpc"], options: AdminOptions): Promise<AdminOutput> {
  const { account, usd: amount, id: grantId = randomUUID(), note = "" } = options;
  if (amount === undefined) throw new StartError("how much? credit grant [<account>] <usd>");
  const amountNanoUsd = readAmount(amount);
  const accountId = await accountOf(client, account);
  const granted = await client.grantCredit({ accountId, amountNanoUsd, grantId, note });
  const did = granted.applied ? `granted ${usd(amountNanoUsd)}` : "nothing was granted: it had been before";
  return {
    result: [`balance\t${usd(granted.balanceNanoUsd)}`],
    notes: [`${did}; grant ${grantId} of account ${accountId}`],
  };
}

function readAmount(text: string): bigint {
  try {
    return parseUsd(text);
  } catch {
    throw new StartError(`the amount must be US dollars such as 10 or 2.50, not ${text}`);
  }
}

async function listHolds(client: AdminClient["rpc"], options: AdminOptions): Promise<AdminOutput> {
  const now = Date.now();
  const from = readInstant("from", options.from ?? new Date(now - dayMs).toISOString());
  const to = readInstant("to", options.to ?? new Date(now + dayMs).toISOString());
  const limit = countOf("limit", options.limit ?? "1000", maxHolds);
  const range = { from: timestampFromDate(from), to: timestampFromDate(to) };
  const result: string[] = [];
  let total = 0;
  for await (const { holds } of client.listHolds(range, { timeoutMs: longCallTimeoutMs })) {
    total += holds.length;
    result.push(...holds.slice(0, limit - result.length).map(holdLine));
  }
  return { result, notes: total > limit ? [`the first ${limit} of ${total}`] : [] };
}

function readInstant(option: string, text: string): Date {
  const instant = new Date(text);
  if (Number.isNaN(instant.getTime())) {
    throw new StartError(`--${option} must be an instant such as 2026-01-31 or 2026-01-31T12:00:00Z`);
  }
  return instant;
}

function holdLine(hold: HoldSummary): string {
  const { generationId, state, accountId, revision, costNanoUsd, debitedNanoUsd, seen } = hold;
  const event = revision === undefined ? "no event" : `revision ${revision}${seen ? "" : ", unseen"}`;
  return [generationId, state, accountId, usd(costNanoUsd), usd(debitedNanoUsd), event].join("\t");
}
