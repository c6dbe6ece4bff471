import { userInfo } from "node:os";
import { join } from "node:path";
import { create, type DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createContextValues, type Interceptor } from "@connectrpc/connect";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { type Account, AccountKind } from "../../gen/media/account/v1/account_pb.ts";
import { KeyKind } from "../../gen/media/account/v1/key_pb.ts";
import { actingForKey } from "../../lib/identity/caller.ts";
import type { Audience } from "../../lib/identity/issuer.ts";
import { readServiceKey } from "../../lib/identity/service-key.ts";
import { createTokenSigner, isOperatorName } from "../../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../../lib/identity/token-interceptor.ts";
import { createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { httpUrlVar, portVar, readConfig, textVar } from "../../lib/runtime/config.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import { CommandFailure, kindOfReason, wrongUsage } from "./failure.ts";
import type { Terminal } from "./output.ts";

const urlVar = httpUrlVar({ default: undefined });

/** The variables of the operator's commands. */
export const adminSpec = {
  ACCOUNT_URL: urlVar,
  USAGE_URL: urlVar,
  DESTINATION_URL: urlVar,
  SPEECH_URL: urlVar,
  IMAGE_URL: urlVar,
  ADMIN_KEY_FILE: textVar({ default: undefined }),
  DATA_DIR: textVar({ default: ".data" }),
  RPC_PORT: portVar({ default: 8081 }),
} as const;

/** The variables that say where services are. */
export const urlNames = {
  account: "ACCOUNT_URL",
  usage: "USAGE_URL",
  destination: "DESTINATION_URL",
  speech: "SPEECH_URL",
  image: "IMAGE_URL",
} as const satisfies Readonly<Record<Audience, keyof typeof adminSpec>>;

/** What a command line is given with. */
export interface CliSurroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly terminal: Terminal;
}

/** Where a service is: what its variable says, or standalone on this machine. Throws ConfigError. */
function urlOf(audience: Audience, env: NodeJS.ProcessEnv): string {
  const config = readConfig(adminSpec, env);
  return config[urlNames[audience]] ?? `http://localhost:${config.RPC_PORT}`;
}

/** The services as an operator calls them. Without their variables they are those of standalone on this machine. */
export class Cli {
  readonly #operator: string | undefined;
  /** What the command line was given with. */
  readonly env: NodeJS.ProcessEnv;
  readonly terminal: Terminal;

  constructor(operator: string | undefined, { env, terminal }: CliSurroundings) {
    this.#operator = operator;
    this.env = env;
    this.terminal = terminal;
  }

  urlOf(audience: Audience): string {
    return urlOf(audience, this.env);
  }

  /** A client with an admin token; what it throws is CommandFailure. Throws the same where there is no key. */
  async client<S extends DescService>(
    service: S,
    audience: Audience,
    defaultTimeoutMs?: number,
  ): Promise<Client<S>> {
    const url = this.urlOf(audience);
    const token = await operatorToken(audience, this.#operator, readConfig(adminSpec, this.env));
    const timing = defaultTimeoutMs === undefined ? {} : { defaultTimeoutMs };
    const transport = createRemoteTransport({ baseUrl: url, interceptors: [token], ...timing });
    return inOperatorsWords(service, createRpcClient(service, transport), `${audience} service at ${url}`);
  }

  account(): Promise<Client<typeof AccountAdminService>> {
    return this.client(AccountAdminService, "account");
  }

  /** The id of the account named, or else of the only one there is. Throws CommandFailure. */
  async accountId(named: string | undefined): Promise<string> {
    if (named !== undefined) return named;
    const { accounts } = await (await this.account()).listAccounts({ pageSize: 2 });
    const [only, second] = accounts;
    if (only === undefined) {
      throw new CommandFailure("refused", "there is no account yet; make one with account create");
    }
    if (second !== undefined) throw wrongUsage("there are several accounts; name one with --account <id>");
    return only.id;
  }

  /** How to call what answers an account's own keys, to see what it sees. Throws CommandFailure. */
  async seenBy(named: string | undefined): Promise<{ account: Account; options: CallOptions }> {
    const accountId = await this.accountId(named);
    const { account } = await (await this.account()).getAccount({ accountId });
    if (account === undefined) throw new CommandFailure("notFound", "there is no such account");
    const organization = account.kind === AccountKind.ORGANIZATION;
    const principal = create(PrincipalSchema, { accountId, organization, keyKind: KeyKind.MANAGEMENT });
    return { account, options: { contextValues: createContextValues().set(actingForKey, principal) } };
  }
}

/** An account client of an operator, for tests and tools; it throws what the service does. */
export async function connectAdmin(
  operator: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ readonly url: string; readonly rpc: Client<typeof AccountAdminService> }> {
  const url = urlOf("account", env);
  const interceptors = [await operatorToken("account", operator, readConfig(adminSpec, env))];
  const transport = createRemoteTransport({ baseUrl: url, interceptors });
  return { url, rpc: createRpcClient(AccountAdminService, transport) };
}

/**
 * Sends tokens of the operator's key with calls to a service. They name the login unless `operator` is given. Throws
 * CommandFailure.
 */
async function operatorToken(
  audience: Audience,
  operator: string | undefined,
  config: { readonly ADMIN_KEY_FILE: string | undefined; readonly DATA_DIR: string },
): Promise<Interceptor> {
  const keyFile = config.ADMIN_KEY_FILE ?? join(config.DATA_DIR, "keys", "admin.jwk");
  const subject = operator ?? systemUser();
  if (!isOperatorName(subject)) throw wrongUsage("--operator must be 1 to 128 printable characters");
  const key = await readServiceKey(keyFile, "operator").catch((thrown: unknown) => {
    if (!(thrown instanceof StartError)) throw thrown;
    throw new CommandFailure("notAllowed", `${thrown.message}; set ADMIN_KEY_FILE to the operator's key`);
  });
  return createTokenInterceptor({ signer: createTokenSigner(key, subject), audience });
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return "operator";
  }
}

type Call = (...args: unknown[]) => Promise<unknown> | AsyncIterable<unknown>;

/** A client whose refusals are CommandFailures. */
function inOperatorsWords<S extends DescService>(service: S, client: Client<S>, name: string): Client<S> {
  const calls = client as Record<string, Call>;
  const worded = service.methods.map(({ localName }): [string, Call] => [
    localName,
    (...args) => {
      const answer = calls[localName]?.(...args);
      if (answer === undefined) throw new Error(`no method ${localName}`);
      return Symbol.asyncIterator in answer ? wordedStream(answer, name) : answer.catch(refusal(name));
    },
  ]);
  return Object.fromEntries(worded) as Client<S>;
}

async function* wordedStream(answer: AsyncIterable<unknown>, name: string): AsyncGenerator<unknown> {
  try {
    yield* answer;
  } catch (thrown) {
    refusal(name)(thrown);
  }
}

function refusal(service: string): (thrown: unknown) => never {
  return (thrown) => {
    if (!(thrown instanceof DomainError)) throw thrown;
    const kind = kindOfReason(thrown.reason);
    throw new CommandFailure(kind, describeRefusal(kind, thrown, service));
  };
}

function describeRefusal(kind: string, { message, issues }: DomainError, service: string): string {
  if (kind === "unreachable") return `the ${service} does not answer`;
  if (kind === "notAllowed") {
    return `the ${service} does not accept this admin key (or the clocks differ): ${message}`;
  }
  if (kind === "internal") return `the ${service} failed; its log says why: ${message}`;
  if (issues.length === 0) return message;
  return issues.map((issue) => `${fieldWords(issue.path)} ${issue.message}`).join("; ");
}

/** A field of a request in the words of commands: `key.member_id` is `member`, `amount_nano_usd` is `amount`. */
function fieldWords(path: string): string {
  const last = path.split(".").at(-1) ?? path;
  return (
    last
      .replace(/_nano_usd$|_id$/, "")
      .replace(/_s$/, "")
      .replaceAll("_", " ") || "the request"
  );
}
