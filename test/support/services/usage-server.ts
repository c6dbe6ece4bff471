import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { AccountKind } from "../../../gen/media/account/v1/account_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { UsageAdminService } from "../../../gen/media/usage/v1/usage_admin_service_pb.ts";
import type { Bus } from "../../../lib/events/bus.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { type Clock, systemClock } from "../../../lib/runtime/clock.ts";
import { type Log, silentLog } from "../../../lib/runtime/log.ts";
import { recordEvents } from "../../../services/usage/record.ts";
import type { UsageDatabase } from "../../../services/usage/store.ts";
import { createUsageService, type RunnableUsageService } from "../../../services/usage/usage-service.ts";
import { awayBus } from "../../fakes/away-bus.ts";
import { clientsOf, identityOf, startTestAccountServer, type TestAccountServer } from "./account-server.ts";
import { createTestUsageDatabase } from "./usage-database.ts";

/** An account with keys to call with. */
export interface TestUsageAccount {
  readonly accountId: string;
  /** Of an organization; empty for personal accounts. */
  readonly memberId: string;
  readonly managementKey: string;
  readonly inferenceKey: string;
  readonly inferenceKeyHash: string;
}

/** What a test chooses about the server. */
export interface TestUsageOptions {
  readonly log?: Log;
  /** The service's own; keys and tokens are checked by the machine's. */
  readonly clock?: Clock;
  /** Only needed by tests that start the consumer. */
  readonly bus?: Bus;
  readonly retentionDays?: number;
}

/** The usage service on a database of its own, reached over a socket, with the account service that knows the keys. */
export interface TestUsageServer {
  readonly url: string;
  readonly account: TestAccountServer;
  readonly usage: RunnableUsageService;
  readonly database: UsageDatabase;
  readonly databaseUrl: string;
  /** Records events as the consumer does. */
  record(...events: readonly GenerationEvent[]): Promise<void>;
  newAccount(kind?: AccountKind): Promise<TestUsageAccount>;
  /** A client that sends this Authorization header. */
  client<S extends DescService>(service: S, authorization?: string): Client<S>;
  /** A client with an admin token. */
  admin(): Promise<Client<typeof UsageAdminService>>;
  close(): Promise<void>;
}

/** Starts account and usage. */
export async function startTestUsageServer(options: TestUsageOptions = {}): Promise<TestUsageServer> {
  const { log = silentLog, clock = systemClock, bus = awayBus, retentionDays = 400 } = options;
  const account = await startTestAccountServer(log);
  const { database, url: databaseUrl, close: closeDatabase } = await createTestUsageDatabase(log);
  const usage = createUsageService({
    database,
    log,
    clock,
    bus,
    retentionDays,
    ...(await identityOf(account, "usage", log)),
  });
  const { services, routes, readiness } = usage;
  const server = await startRpcServer({ host: "127.0.0.1", port: 0, services, routes, readiness, log });
  const url = `http://127.0.0.1:${server.port}`;
  const client = clientsOf(url);
  return {
    url,
    account,
    usage,
    database,
    databaseUrl,
    record: (...events) => record(database, events),
    newAccount: (kind) => newAccount(account, kind),
    client,
    admin: async () => client(UsageAdminService, await account.tokenOf("operator", "usage")),
    async close() {
      await server.drain({ delayMs: 0, timeoutMs: 1000 });
      await closeDatabase();
      await account.close();
    },
  };
}

async function record(database: UsageDatabase, events: readonly GenerationEvent[]): Promise<void> {
  const [refused] = await recordEvents(database, events, new AbortController().signal);
  if (refused !== undefined) throw new Error(`${refused.eventId} was refused: ${refused.reason}`);
}

async function newAccount(
  server: TestAccountServer,
  kind: AccountKind = AccountKind.PERSONAL,
): Promise<TestUsageAccount> {
  const admin = await server.admin();
  const accountId = (await admin.createAccount({ name: "Test", kind })).account?.id ?? "";
  const isOrganization = kind === AccountKind.ORGANIZATION;
  const memberId = isOrganization ? ((await admin.addMember({ accountId, name: "A" })).member?.id ?? "") : "";
  const management = { name: "manage", kind: KeyKind.MANAGEMENT, memberId };
  const { secret: managementKey } = await admin.createAccountKey({ accountId, key: management });
  const { secret } = await admin.createAccountKey({ accountId, key: { name: "speak", memberId } });
  return { accountId, memberId, managementKey, inferenceKey: secret, inferenceKeyHash: hashApiKey(secret) };
}
