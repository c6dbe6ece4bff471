import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { type Key, KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../../gen/media/account/v1/key_service_pb.ts";
import { hashApiKey, isApiKey, isKeyHash } from "../../../lib/identity/api-key.ts";
import {
  keyKinds,
  keyScopes,
  limitResets,
  maxKeyGraceS,
  maxKeyRatePerMinute,
} from "../../../lib/limits/key-limits.ts";
import { wordOf } from "../../../lib/limits/words.ts";
import { accountOption, type Input, type Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { CommandFailure, wrongUsage } from "../failure.ts";
import { type Fields, type Output, usd } from "../output.ts";
import { readAmount } from "./credit.ts";

const keyPageSize = 100;
/** As much of a hash as logs show. */
const shortestHash = 8;
const columns = ["hash", "name", "kind", "state", "limit_usd", "remaining_usd", "spent_usd", "last_used_at"];
const naming =
  "A key is named by its hash or the first 8 or more characters of it; - reads the key itself from stdin. A key does not\nbelong on a command line, where others see it.";

/** API keys. */
export const key: Noun = {
  name: "key",
  summary: "API keys of an account",
  verbs: [
    {
      name: "create",
      summary: "make a key and show it, this once",
      options: [
        accountOption,
        { name: "kind", value: "kind", help: "inference (unless given) or management" },
        {
          name: "scopes",
          value: "scopes",
          help: "speech, images or both, commas between; both unless given",
        },
        { name: "name", value: "name", help: "a name for people" },
        { name: "member", value: "id", help: "whose it is, in an organization" },
        { name: "limit", value: "usd", help: "the most that it may spend, US dollars" },
        { name: "reset", value: "period", help: "when the limit starts anew: daily, weekly or monthly" },
        { name: "rate", value: "n", help: "requests a minute" },
        { name: "expires", value: "instant", help: "from when it is refused" },
      ],
      run: createKey,
    },
    {
      name: "list",
      summary: "an account's keys, newest first",
      options: [accountOption],
      async run(input, cli) {
        const { options } = await cli.seenBy(input.text("account"));
        const rows: Fields[] = [];
        for await (const keys of pagesOfKeys(cli, options)) rows.push(...keys.map(keyFields));
        return { columns, rows };
      },
    },
    {
      name: "show",
      summary: "one key",
      positionals: ["key"],
      options: [accountOption],
      details: naming,
      async run(input, cli) {
        const { hash, options } = await findKey(input, cli);
        const { key } = await (await cli.client(KeyService, "account")).getKey({ hash }, options);
        return { fields: keyFields(key) };
      },
    },
    {
      name: "disable",
      summary: "refuse a key, everywhere within 5 s",
      positionals: ["key"],
      options: [accountOption],
      details: `${naming}\nUnlike an account's own keys, an operator may disable its last management key.`,
      run: (input, cli) => switchKey(input, cli, true),
    },
    {
      name: "enable",
      summary: "let a key work again",
      positionals: ["key"],
      options: [accountOption],
      details: naming,
      run: (input, cli) => switchKey(input, cli, false),
    },
    {
      name: "rotate",
      summary: "make a successor of a key and show it, this once",
      positionals: ["key"],
      options: [
        accountOption,
        { name: "grace", value: "seconds", help: "how long the old one still works; 0 unless given" },
      ],
      details: `${naming}\nThe successor has the old key's limits, and both spend from the same ones.`,
      run: rotateKey,
    },
  ],
};

async function createKey(input: Input, cli: Cli): Promise<Output> {
  const kind = input.word("kind", keyKinds) ?? KeyKind.INFERENCE;
  const word = wordOf(keyKinds, kind);
  const [limit, expires] = [input.text("limit"), input.instant("expires")];
  const rate = input.count("rate", maxKeyRatePerMinute);
  const reset = input.word("reset", limitResets);
  const wanted = {
    name: input.text("name") ?? `${word} key`,
    kind,
    scopes: [...input.words("scopes", keyScopes)],
    memberId: input.text("member") ?? "",
    ...(limit === undefined ? {} : { limitNanoUsd: readAmount(limit) }),
    ...(reset === undefined ? {} : { limitReset: reset }),
    ...(rate === undefined ? {} : { rateLimitPerMinute: rate }),
    ...(expires === undefined ? {} : { expiresAt: timestampFromDate(expires) }),
  };
  const accountId = await cli.accountId(input.text("account"));
  const { secret, key } = await (await cli.account()).createAccountKey({ accountId, key: wanted });
  return {
    secret,
    fields: keyFields(key),
    notes: [`${word} key ${key?.hash} of account ${accountId}; it is shown this once`],
  };
}

async function switchKey(input: Input, cli: Cli, disabled: boolean): Promise<Output> {
  const { accountId, hash } = await findKey(input, cli);
  const { key } = await (await cli.account()).updateAccountKey({ accountId, key: { hash, disabled } });
  return { fields: keyFields(key) };
}

async function rotateKey(input: Input, cli: Cli): Promise<Output> {
  const graceS = BigInt(input.count("grace", maxKeyGraceS, 0) ?? 0);
  const { accountId, hash } = await findKey(input, cli);
  const { secret, key } = await (await cli.account()).rotateAccountKey({ accountId, key: { hash, graceS } });
  const until = graceS === 0n ? "is refused from now on" : `works for ${graceS} s more`;
  return {
    secret,
    fields: keyFields(key),
    notes: [`key ${key?.hash} succeeds ${hash}, which ${until}; it is shown this once`],
  };
}

/** The key that was named, of the account. Throws CommandFailure. */
async function findKey(input: Input, cli: Cli) {
  const hash = await readHash(input.required("key"), cli);
  const { account, options } = await cli.seenBy(input.text("account"));
  if (isKeyHash(hash)) return { accountId: account.id, hash, options };
  const found: string[] = [];
  for await (const keys of pagesOfKeys(cli, options)) {
    found.push(...keys.map((key) => key.hash).filter((whole) => whole.startsWith(hash)));
  }
  const [only, second] = found;
  if (only === undefined)
    throw new CommandFailure("notFound", "the account has no such key; key list shows them");
  if (second !== undefined) throw wrongUsage(`several keys begin with ${hash}: give more of the hash`);
  return { accountId: account.id, hash: only, options };
}

/** A hash, or the beginning of one. What is no hash is not repeated, since it may be a key. */
async function readHash(named: string, cli: Cli): Promise<string> {
  if (named === "-") {
    const given = (await cli.terminal.read()).trim();
    if (!isApiKey(given)) throw wrongUsage("stdin holds no API key");
    return hashApiKey(given);
  }
  if (/^[0-9a-f]+$/.test(named) && named.length >= shortestHash && named.length <= 64) return named;
  throw wrongUsage("name the key by its hash, or pipe the key itself and write - in its place");
}

async function* pagesOfKeys(cli: Cli, options: CallOptions): AsyncGenerator<readonly Key[]> {
  const client = await cli.client(KeyService, "account");
  for (let offset = 0; ; offset += keyPageSize) {
    const request = { offset, limit: keyPageSize, includeDisabled: true };
    const { keys, totalCount } = await client.listKeys(request, options);
    yield keys;
    if (keys.length === 0 || BigInt(offset + keys.length) >= totalCount) return;
  }
}

function keyFields(key: Key | undefined): Fields {
  if (key === undefined) return {};
  const { hash, label, name, kind, scopes, memberId, createdAt, expiresAt, lastUsedAt } = key;
  const { limitNanoUsd, limitRemainingNanoUsd } = key;
  return {
    hash,
    label,
    name,
    kind: wordOf(keyKinds, kind),
    scopes: scopes.map((scope) => wordOf(keyScopes, scope) ?? ""),
    state: stateOf(key),
    member: memberId || undefined,
    limit_usd: limitNanoUsd === undefined ? undefined : usd(limitNanoUsd),
    limit_starts_anew: wordOf(limitResets, key.limitReset),
    remaining_usd: limitRemainingNanoUsd === undefined ? undefined : usd(limitRemainingNanoUsd),
    spent_usd: usd(key.usage?.totalNanoUsd ?? 0n),
    requests_a_minute: key.rateLimitPerMinute,
    created_at: createdAt && timestampDate(createdAt),
    expires_at: expiresAt && timestampDate(expiresAt),
    last_used_at: lastUsedAt && timestampDate(lastUsedAt),
  };
}

function stateOf({ disabled, expiresAt }: Key): string {
  if (disabled) return "disabled";
  return expiresAt !== undefined && timestampDate(expiresAt).getTime() <= Date.now() ? "expired" : "works";
}
