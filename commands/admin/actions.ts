import { type Account, AccountKind, type Member } from "../../gen/media/account/v1/account_pb.ts";
import { keyKinds, keyScopes } from "../../lib/limits/key-limits.ts";
import { httpUrlVar, portVar, readConfig } from "../../lib/runtime/config.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import {
  type AdminAction,
  type AdminOptions,
  type AdminOutput,
  accountOf,
  countOf,
  usd,
  when,
} from "./action.ts";
import type { AdminClient } from "./client.ts";
import { creditActions } from "./credit-actions.ts";

const maxAuditEntries = 100_000;

/** The operator's commands by name. */
export const adminActions: Readonly<Record<string, AdminAction>> = {
  "account create": {
    options: ["name", "kind"],
    usage: "--name <name> [--kind personal|organization]",
    async run(client, { name = "", kind = "personal" }) {
      const { account } = await client.createAccount({ name, kind: wordOf("kind", accountKinds, kind) });
      return { result: account === undefined ? [] : [accountLine(account)] };
    },
  },
  "account list": {
    options: [],
    usage: "",
    async run(client) {
      const result: string[] = [];
      let pageToken = "";
      do {
        const page = await client.listAccounts({ pageToken });
        result.push(...page.accounts.map(accountLine));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      return { result };
    },
  },
  "account show": {
    options: ["account"],
    positionals: ["account"],
    usage: "[<account>]",
    async run(client, { account: named }) {
      const { account } = await client.getAccount({ accountId: await accountOf(client, named) });
      return { result: account === undefined ? [] : accountLines(account) };
    },
  },
  "member add": {
    options: ["account", "name"],
    usage: "[--account <id>] --name <name>",
    async run(client, { account, name = "" }) {
      const { member } = await client.addMember({ accountId: await accountOf(client, account), name });
      return { result: member === undefined ? [] : [memberLine(member)] };
    },
  },
  "member list": {
    options: ["account"],
    usage: "[--account <id>]",
    async run(client, { account }) {
      const { members } = await client.listMembers({ accountId: await accountOf(client, account) });
      return { result: members.map(memberLine) };
    },
  },
  "member remove": {
    options: ["account", "member"],
    usage: "[--account <id>] --member <id>",
    async run(client, { account, member: memberId = "" }) {
      const accountId = await accountOf(client, account);
      const { member } = await client.removeMember({ accountId, memberId });
      return { result: member === undefined ? [] : [memberLine(member)] };
    },
  },
  "key create": {
    options: ["account", "kind", "scopes", "name", "member"],
    usage:
      "[--account <id>] [--kind inference|management] [--scopes speech,images] [--name <name>] [--member <id>]",
    run: createKey,
  },
  "console-link create": {
    options: ["account", "url"],
    usage: "[--account <id>] [--url <address of the gateway>]",
    run: createConsoleLink,
  },
  ...creditActions,
  "audit list": {
    options: ["account", "limit"],
    usage: "[--account <id>] [--limit <n>]",
    run: listAudit,
  },
};

/** Where the gateway is for whoever opens the link. */
const gatewaySpec = {
  PUBLIC_URL: httpUrlVar({ default: undefined }),
  PORT: portVar({ default: 8080 }),
} as const;

async function createConsoleLink(
  client: AdminClient["rpc"],
  { account, url }: AdminOptions,
): Promise<AdminOutput> {
  const { PUBLIC_URL, PORT } = readConfig(gatewaySpec);
  const base = (url ?? PUBLIC_URL ?? `http://localhost:${PORT}`).replace(/\/+$/, "");
  const accountId = await accountOf(client, account);
  const { code, expiresAt } = await client.createConsoleLink({ accountId });
  return {
    result: [`${base}/#/link/${code}`],
    notes: [`signs a browser in to account ${accountId}, once, until ${when(expiresAt)}`],
  };
}

const accountKinds = { personal: AccountKind.PERSONAL, organization: AccountKind.ORGANIZATION };

async function createKey(client: AdminClient["rpc"], options: AdminOptions): Promise<AdminOutput> {
  const { account, kind = "inference", name = `${kind} key`, member = "", scopes = "" } = options;
  const words = scopes.split(",").filter((word) => word !== "");
  const wanted = {
    name,
    kind: wordOf("kind", keyKinds, kind),
    scopes: words.map((word) => wordOf("scopes", keyScopes, word.trim())),
    memberId: member,
  };
  const accountId = await accountOf(client, account);
  const { secret, key } = await client.createAccountKey({ accountId, key: wanted });
  return {
    result: [secret],
    notes: [`${kind} key ${key?.hash} of account ${accountId}; it is shown this once`],
  };
}

function wordOf<V>(option: string, values: Readonly<Record<string, V>>, word: string): V {
  const value = Object.hasOwn(values, word) ? values[word] : undefined;
  if (value === undefined)
    throw new StartError(`--${option} takes ${Object.keys(values).join(", ")}, not ${word}`);
  return value;
}

async function listAudit(
  client: AdminClient["rpc"],
  { account: accountId = "", limit = "100" }: AdminOptions,
): Promise<AdminOutput> {
  let wanted = countOf("limit", limit, maxAuditEntries);
  const result: string[] = [];
  let before: { beforeId: bigint } | undefined;
  do {
    const { entries } = await client.listAuditEntries({
      accountId,
      ...before,
      pageSize: Math.min(wanted, 500),
    });
    for (const { id, at, operator, action, accountId, subject, note } of entries) {
      const words = [id, when(at), operator, action, accountId, subject];
      result.push((note === "" ? words : [...words, note]).join("\t"));
    }
    const last = entries.at(-1);
    before = last === undefined ? undefined : { beforeId: last.id };
    wanted -= entries.length;
  } while (before !== undefined && wanted > 0);
  return { result };
}

function accountLine(account: Account): string {
  const { id, name, createdAt, balanceNanoUsd } = account;
  return [id, kindWord(account), when(createdAt), usd(balanceNanoUsd), name].join("\t");
}

function accountLines(account: Account): string[] {
  const { grantedNanoUsd, chargedNanoUsd, balanceNanoUsd, heldNanoUsd } = account;
  return [
    ["id", account.id],
    ["kind", kindWord(account)],
    ["name", account.name],
    ["created", when(account.createdAt)],
    ["granted", usd(grantedNanoUsd)],
    ["charged", usd(chargedNanoUsd)],
    ["balance", usd(balanceNanoUsd)],
    ["held", usd(heldNanoUsd)],
    ["free", usd(balanceNanoUsd - heldNanoUsd)],
  ].map((words) => words.join("\t"));
}

function kindWord({ kind }: Account): string {
  return kind === AccountKind.ORGANIZATION ? "organization" : "personal";
}

function memberLine({ id, name, createdAt, removedAt }: Member): string {
  const state = removedAt === undefined ? "active" : `removed ${when(removedAt)}`;
  return [id, state, when(createdAt), name].join("\t");
}
