import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { type Account, AccountKind, type Member } from "../gen/media/account/v1/account_pb.ts";
import { KeyKind, KeyScope } from "../gen/media/account/v1/key_pb.ts";
import { StartError } from "../lib/runtime/process.ts";
import type { AdminClient } from "./admin-client.ts";

/** What stands behind the command's name, such as `--account <id>`. */
export type AdminOptions = Readonly<Record<string, string | undefined>>;

/** What a command prints: `result` to stdout, `notes` to stderr. */
export interface AdminOutput {
  readonly result: readonly string[];
  readonly notes?: readonly string[];
}

/** A command of the operator. */
export interface AdminAction {
  /** The options it takes. */
  readonly options: readonly string[];
  readonly usage: string;
  run(client: AdminClient["rpc"], options: AdminOptions): Promise<AdminOutput>;
}

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
  "audit list": {
    options: ["account", "limit"],
    usage: "[--account <id>] [--limit <n>]",
    async run(client, { account: accountId = "", limit = "100" }) {
      const pageSize = Number(limit);
      if (!/^\d{1,4}$/.test(limit)) throw new StartError("--limit must be a whole number from 1 to 1000");
      const { entries } = await client.listAuditEntries({ accountId, pageSize });
      return {
        result: entries.map(({ id, at, operator, action, accountId, subject }) =>
          [id, when(at), operator, action, accountId, subject].join("\t"),
        ),
      };
    },
  },
};

const accountKinds = { personal: AccountKind.PERSONAL, organization: AccountKind.ORGANIZATION };
const keyKinds = { inference: KeyKind.INFERENCE, management: KeyKind.MANAGEMENT };
const keyScopes = { speech: KeyScope.SPEECH, images: KeyScope.IMAGES };

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

/** The account named, or else the only one there is. */
async function accountOf(client: AdminClient["rpc"], named: string | undefined): Promise<string> {
  if (named !== undefined) return named;
  const { accounts } = await client.listAccounts({ pageSize: 2 });
  const [only, second] = accounts;
  if (only === undefined) throw new StartError("there is no account yet; make one with account create");
  if (second !== undefined) throw new StartError("there are several accounts; name one with --account <id>");
  return only.id;
}

function accountLine({ id, kind, name, createdAt }: Account): string {
  const word = kind === AccountKind.ORGANIZATION ? "organization" : "personal";
  return [id, word, when(createdAt), name].join("\t");
}

function memberLine({ id, name, createdAt, removedAt }: Member): string {
  const state = removedAt === undefined ? "active" : `removed ${when(removedAt)}`;
  return [id, state, when(createdAt), name].join("\t");
}

function when(instant: Timestamp | undefined): string {
  return instant === undefined ? "" : timestampDate(instant).toISOString();
}
