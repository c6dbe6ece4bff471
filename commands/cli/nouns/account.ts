import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Account, AccountKind, type Member } from "../../../gen/media/account/v1/account_pb.ts";
import { accountOption, type Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { type Fields, type Output, usd } from "../output.ts";

const kinds = { personal: AccountKind.PERSONAL, organization: AccountKind.ORGANIZATION };

const accountColumns = ["id", "kind", "name", "created_at", "balance_usd", "held_usd", "state"];
const memberColumns = ["id", "name", "created_at", "removed_at"];

/** What accounts are. */
export const account: Noun = {
  name: "account",
  summary: "accounts, which own keys, credit, destinations and usage",
  verbs: [
    {
      name: "create",
      summary: "make an account",
      options: [
        { name: "name", value: "name", help: "a name for people" },
        { name: "kind", value: "kind", help: "personal (unless given) or organization" },
      ],
      async run(input, cli) {
        const kind = input.word("kind", kinds) ?? AccountKind.PERSONAL;
        const asked = { name: input.required("name"), kind };
        const { account } = await (await cli.account()).createAccount(asked);
        return { fields: accountFields(account) };
      },
    },
    {
      name: "list",
      summary: "all accounts, oldest first",
      run: (_, cli) => listAccounts(cli),
    },
    {
      name: "show",
      summary: "one account with its books",
      positionals: ["account"],
      optional: ["account"],
      options: [accountOption],
      async run(input, cli) {
        const accountId = await cli.accountId(input.text("account"));
        const { account } = await (await cli.account()).getAccount({ accountId });
        return { fields: accountFields(account) };
      },
    },
    {
      name: "rename",
      summary: "give an account another name",
      positionals: ["account", "name"],
      run: (input, cli) =>
        update(cli, { accountId: input.required("account"), name: input.required("name") }),
    },
    {
      name: "disable",
      summary: "refuse all keys of an account, everywhere within 5 s",
      positionals: ["account"],
      details: "Requests under way end and are charged; destinations go on being delivered to.",
      run: (input, cli) => update(cli, { accountId: input.required("account"), disabled: true }),
    },
    {
      name: "enable",
      summary: "let the keys of an account work again",
      positionals: ["account"],
      run: (input, cli) => update(cli, { accountId: input.required("account"), disabled: false }),
    },
  ],
};

/** Who belongs to organizations. */
export const member: Noun = {
  name: "member",
  summary: "members of organizations",
  verbs: [
    {
      name: "add",
      summary: "add a member to an organization",
      options: [accountOption, { name: "name", value: "name", help: "a name for people" }],
      async run(input, cli) {
        const name = input.required("name");
        const accountId = await cli.accountId(input.text("account"));
        const { member } = await (await cli.account()).addMember({ accountId, name });
        return { fields: memberFields(member) };
      },
    },
    {
      name: "list",
      summary: "an organization's members, those who left included",
      options: [accountOption],
      async run(input, cli) {
        const accountId = await cli.accountId(input.text("account"));
        const { members } = await (await cli.account()).listMembers({ accountId });
        return { columns: memberColumns, rows: members.map(memberFields) };
      },
    },
    {
      name: "remove",
      summary: "remove a member and disable their keys",
      options: [accountOption, { name: "member", value: "id", help: "who" }],
      async run(input, cli) {
        const memberId = input.required("member");
        const accountId = await cli.accountId(input.text("account"));
        const { member } = await (await cli.account()).removeMember({ accountId, memberId });
        return { fields: memberFields(member) };
      },
    },
  ],
};

async function listAccounts(cli: Cli): Promise<Output> {
  const client = await cli.account();
  const rows: Fields[] = [];
  let pageToken = "";
  do {
    const page = await client.listAccounts({ pageToken });
    rows.push(...page.accounts.map(accountFields));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { columns: accountColumns, rows };
}

async function update(
  cli: Cli,
  change: { readonly accountId: string; readonly name?: string; readonly disabled?: boolean },
): Promise<Output> {
  const { account } = await (await cli.account()).updateAccount(change);
  return { fields: accountFields(account) };
}

function accountFields(account: Account | undefined): Fields {
  if (account === undefined) return {};
  const { id, kind, name, createdAt, disabledAt } = account;
  return {
    id,
    kind: kind === AccountKind.ORGANIZATION ? "organization" : "personal",
    name,
    state: disabledAt === undefined ? "works" : `disabled since ${timestampDate(disabledAt).toISOString()}`,
    created_at: createdAt && timestampDate(createdAt),
    granted_usd: usd(account.grantedNanoUsd),
    charged_usd: usd(account.chargedNanoUsd),
    balance_usd: usd(account.balanceNanoUsd),
    held_usd: usd(account.heldNanoUsd),
    free_usd: usd(account.balanceNanoUsd - account.heldNanoUsd),
  };
}

function memberFields(member: Member | undefined): Fields {
  if (member === undefined) return {};
  const { id, name, createdAt, removedAt } = member;
  return {
    id,
    name,
    created_at: createdAt && timestampDate(createdAt),
    removed_at: removedAt && timestampDate(removedAt),
  };
}
