import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Input, Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import type { Fields, Output } from "../output.ts";

const maxEntries = 100_000;
const columns = ["id", "at", "operator", "action", "account", "subject", "note"];

/** What operators changed. */
export const audit: Noun = {
  name: "audit",
  summary: "what operators changed",
  verbs: [
    {
      name: "list",
      summary: "changes, newest first",
      options: [
        { name: "account", value: "id", help: "of this account alone" },
        { name: "limit", value: "n", help: "how many; 100 unless given" },
      ],
      run: listAudit,
    },
  ],
};

async function listAudit(input: Input, cli: Cli): Promise<Output> {
  let wanted = input.count("limit", maxEntries, 100) ?? 0;
  const client = await cli.account();
  const accountId = input.text("account") ?? "";
  const rows: Fields[] = [];
  let before: { beforeId: bigint } | undefined;
  do {
    const pageSize = Math.min(wanted, 500);
    const { entries } = await client.listAuditEntries({ accountId, ...before, pageSize });
    for (const { id, at, operator, action, accountId: account, subject, note } of entries) {
      rows.push({ id, at: at && timestampDate(at), operator, action, account, subject, note });
    }
    const last = entries.at(-1);
    before = last === undefined ? undefined : { beforeId: last.id };
    wanted -= entries.length;
  } while (before !== undefined && wanted > 0);
  return { columns, rows };
}
