import { randomUUID } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type LedgerEntry, LedgerEntryType } from "../../../gen/media/account/v1/credit_pb.ts";
import { CreditService } from "../../../gen/media/account/v1/credit_service_pb.ts";
import { cursorPage } from "../../../lib/limits/cursor-page.ts";
import { parseUsd } from "../../../lib/money/nano-usd.ts";
import { accountOption, type Input, type Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { wrongUsage } from "../failure.ts";
import { dollars, type Fields, type Output, usd } from "../output.ts";

const maxEntries = 100_000;
const ledgerColumns = ["at", "what", "amount_usd", "id"];
const once = "Give an --id, such as an invoice's number, and repeating the command changes nothing.";

/** What accounts may spend. */
export const credit: Noun = {
  name: "credit",
  summary: "credit of an account",
  verbs: [
    {
      name: "grant",
      summary: "give credit",
      positionals: ["account", "usd"],
      optional: ["account"],
      options: [
        accountOption,
        { name: "id", value: "id", help: "gives it once; without one every call gives anew" },
        { name: "note", value: "text", help: "why, for the audit" },
      ],
      details: once,
      run: grant,
    },
    {
      name: "correct",
      summary: "take granted credit back",
      positionals: ["account", "usd"],
      optional: ["account"],
      options: [
        accountOption,
        { name: "reason", value: "text", help: "why, for the audit" },
        { name: "id", value: "id", help: "takes it once; without one every call takes anew" },
      ],
      details: `The amount has a minus, such as -2.50. No more is taken than is free: neither spent nor on hold.\n${once}`,
      run: correct,
    },
    {
      name: "ledger",
      summary: "what moved an account's credit, newest first",
      options: [accountOption, { name: "limit", value: "n", help: "how many entries; 100 unless given" }],
      run: listLedger,
    },
  ],
};

async function grant(input: Input, cli: Cli): Promise<Output> {
  const amountNanoUsd = readAmount(input.required("usd"));
  if (amountNanoUsd <= 0n) throw wrongUsage("the amount must be above 0; credit correct takes credit back");
  const grantId = input.text("id") ?? randomUUID();
  const accountId = await cli.accountId(input.text("account"));
  const note = input.text("note") ?? "";
  const granted = await (await cli.account()).grantCredit({ accountId, amountNanoUsd, grantId, note });
  const did = granted.applied
    ? `granted ${dollars(amountNanoUsd)}`
    : "nothing was granted: it had been before";
  return {
    fields: { balance_usd: usd(granted.balanceNanoUsd) },
    notes: [`${did}; grant ${grantId} of account ${accountId}`],
  };
}

async function correct(input: Input, cli: Cli): Promise<Output> {
  const signed = readAmount(input.required("usd"));
  if (signed >= 0n) throw wrongUsage("a correction has a minus, such as -2.50; credit grant gives credit");
  const reason = input.required("reason");
  const correctionId = input.text("id") ?? randomUUID();
  const accountId = await cli.accountId(input.text("account"));
  const request = { accountId, amountNanoUsd: -signed, correctionId, reason };
  const corrected = await (await cli.account()).correctCredit(request);
  const did = corrected.applied ? `took ${dollars(-signed)} back` : "nothing was taken: it had been before";
  return {
    fields: { balance_usd: usd(corrected.balanceNanoUsd) },
    notes: [`${did}; correction ${correctionId} of account ${accountId}`],
  };
}

async function listLedger(input: Input, cli: Cli): Promise<Output> {
  let wanted = input.count("limit", maxEntries, 100) ?? 0;
  const { options } = await cli.seenBy(input.text("account"));
  const client = await cli.client(CreditService, "account");
  const rows: Fields[] = [];
  let pageToken = "";
  do {
    const pageSize = Math.min(wanted, cursorPage.limit.maximum);
    const page = await client.listLedgerEntries({ pageToken, pageSize }, options);
    rows.push(...page.entries.map(entryFields));
    wanted -= page.entries.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && wanted > 0);
  return { columns: ledgerColumns, rows };
}

const entryWords: Readonly<Record<LedgerEntryType, string>> = {
  [LedgerEntryType.UNSPECIFIED]: "",
  [LedgerEntryType.GRANT]: "grant",
  [LedgerEntryType.CHARGE]: "charge",
  [LedgerEntryType.CORRECTION]: "correction",
};

function entryFields({ createdAt, type, amountNanoUsd, generationId, grantId }: LedgerEntry): Fields {
  return {
    at: createdAt && timestampDate(createdAt),
    what: entryWords[type],
    amount_usd: usd(type === LedgerEntryType.GRANT ? amountNanoUsd : -amountNanoUsd),
    id: generationId || grantId,
  };
}

/** US dollars that a person wrote, as nano-USD. Throws CommandFailure. */
export function readAmount(text: string): bigint {
  try {
    return parseUsd(text.replace(/^(-?)\$/, "$1"));
  } catch {
    throw wrongUsage(`the amount must be US dollars such as 10 or 2.50, not ${text}`);
  }
}
