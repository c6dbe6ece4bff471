import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HoldSummary } from "../../../gen/media/account/v1/account_admin_pb.ts";
import { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { type Input, longCallTimeoutMs, type Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { type Fields, type Output, usd } from "../output.ts";

const dayMs = 86_400_000;
const maxHolds = 100_000;
const columns = ["id", "state", "account", "held_usd", "cost_usd", "charged_usd", "event", "deadline"];

/** Credit that is held for requests. */
export const hold: Noun = {
  name: "hold",
  alias: "holds",
  summary: "credit that is held, or was, for requests",
  verbs: [
    {
      name: "list",
      summary: "the holds of requests whose deadline lies in a span",
      options: [
        { name: "from", value: "instant", help: "its beginning; a day back unless given" },
        { name: "to", value: "instant", help: "its end; a day ahead unless given" },
        { name: "account", value: "id", help: "of this account alone" },
        { name: "state", value: "state", help: "open, settled, lost, released or refused" },
        { name: "limit", value: "n", help: "how many; 1000 unless given" },
      ],
      run: listHolds,
    },
  ],
};

const states = { open: "open", settled: "settled", lost: "lost", released: "released", refused: "refused" };

async function listHolds(input: Input, cli: Cli): Promise<Output> {
  const now = Date.now();
  const from = input.instant("from") ?? new Date(now - dayMs);
  const to = input.instant("to") ?? new Date(now + dayMs);
  const limit = input.count("limit", maxHolds, 1000) ?? 0;
  const [account, state] = [input.text("account"), input.word("state", states)];
  const isAsked = (found: HoldSummary) =>
    (account === undefined || found.accountId === account) && (state === undefined || found.state === state);
  const range = { from: timestampFromDate(from), to: timestampFromDate(to) };
  const client = await cli.client(AccountAdminService, "account", longCallTimeoutMs);
  const rows: Fields[] = [];
  let total = 0;
  for await (const { holds } of client.listHolds(range)) {
    const asked = holds.filter(isAsked);
    total += asked.length;
    rows.push(...asked.slice(0, limit - rows.length).map(holdFields));
  }
  return { columns, rows, notes: total > limit ? [`the first ${limit} of ${total}`] : [] };
}

function holdFields(hold: HoldSummary): Fields {
  const { generationId, state, accountId, revision, seen, deadline } = hold;
  return {
    id: generationId,
    state,
    account: accountId,
    held_usd: usd(hold.amountNanoUsd),
    cost_usd: usd(hold.costNanoUsd),
    charged_usd: usd(hold.debitedNanoUsd),
    event: revision === undefined ? "none" : `revision ${revision}${seen ? "" : ", unseen"}`,
    deadline: deadline && timestampDate(deadline),
  };
}
