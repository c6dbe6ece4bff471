import type { LookupFunction } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { AccountKind } from "../../../gen/media/account/v1/account_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import type { Bus } from "../../../lib/events/bus.ts";
import { connectAccount } from "../../../lib/identity/account-client.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import type { Cidr } from "../../../lib/runtime/config.ts";
import { type Log, silentLog } from "../../../lib/runtime/log.ts";
import type { RecordDestinationAction } from "../../../services/destination/admin-rpc.ts";
import type { DeliveryLimits } from "../../../services/destination/delivery/delivery-limits.ts";
import { openReceivers } from "../../../services/destination/delivery/receivers.ts";
import {
  createDestinationService,
  type RunnableDestinationService,
} from "../../../services/destination/settings/destination-service.ts";
import type { DestinationTypes } from "../../../services/destination/settings/settings-keeper.ts";
import type { DestinationDatabase } from "../../../services/destination/store.ts";
import { awayBus } from "../../fakes/away-bus.ts";
import { clientsOf, identityOf, startTestAccountServer, type TestAccountServer } from "./account-server.ts";
import { createTestDestinationDatabase } from "./destination-database.ts";
import { loopback, quickLimits, testSealer } from "./destination-replica.ts";
import { plainTypes } from "./destination-type.ts";

/** An account with keys to call with. */
export interface TestDestinationAccount {
  readonly accountId: string;
  readonly managementKey: string;
  readonly inferenceKey: string;
}

/** What a test chooses about the server. */
export interface TestDestinationOptions {
  readonly log?: Log;
  /** Only needed by tests that start the service's background work. */
  readonly bus?: Bus;
  readonly types?: DestinationTypes;
  /** This machine alone unless given. */
  readonly allowedCidrs?: readonly Cidr[];
  readonly lookup?: LookupFunction;
  readonly limits?: Partial<DeliveryLimits>;
  readonly retentionDays?: number;
}

/** The destination service on a database of its own, reached over a socket, with the account service that knows the keys. */
export interface TestDestinationServer {
  readonly url: string;
  readonly account: TestAccountServer;
  readonly destination: RunnableDestinationService;
  readonly database: DestinationDatabase;
  readonly databaseUrl: string;
  newAccount(): Promise<TestDestinationAccount>;
  /** A client that sends this Authorization header. */
  client<S extends DescService>(service: S, authorization?: string): Client<S>;
  close(): Promise<void>;
}

/** Starts account and destination; what works in the background is for the test to start. */
export async function startTestDestinationServer(
  options: TestDestinationOptions = {},
): Promise<TestDestinationServer> {
  const { log = silentLog, bus = awayBus, types = plainTypes, retentionDays = 400 } = options;
  const account = await startTestAccountServer(log);
  const { database, url: databaseUrl, close: closeDatabase } = await createTestDestinationDatabase(log);
  const { allowedCidrs = loopback, lookup } = options;
  const receivers = openReceivers({ allowedCidrs, ...(lookup === undefined ? {} : { lookup }) });
  const destination = createDestinationService({
    database,
    log,
    bus,
    types,
    sealer: testSealer,
    receivers,
    retentionDays,
    limits: { ...quickLimits, ...options.limits },
    ...(await identityOf(account, "destination", log)),
    recordAction: await recorderOf(account),
  });
  const { services, routes, readiness } = destination;
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services,
    routes,
    readiness,
    log,
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    account,
    destination,
    database,
    databaseUrl,
    newAccount: () => newAccount(account),
    client: clientsOf(url),
    async close() {
      await server.drain({ delayMs: 0, timeoutMs: 1000 });
      await destination.stop();
      await receivers.close();
      await closeDatabase();
      await account.close();
    },
  };
}

async function recorderOf({ url, keyFiles }: TestAccountServer): Promise<RecordDestinationAction> {
  const config = { ACCOUNT_URL: url, SERVICE_KEY_FILE: keyFiles.keyFile("destination") };
  const client = await connectAccount(config, "destination");
  return (action) => client.recordDestinationAction(action);
}

async function newAccount(server: TestAccountServer): Promise<TestDestinationAccount> {
  const admin = await server.admin();
  const { account } = await admin.createAccount({ name: "Test", kind: AccountKind.PERSONAL });
  const accountId = account?.id ?? "";
  const management = { name: "manage", kind: KeyKind.MANAGEMENT };
  const { secret: managementKey } = await admin.createAccountKey({ accountId, key: management });
  const { secret: inferenceKey } = await admin.createAccountKey({ accountId, key: { name: "speak" } });
  return { accountId, managementKey, inferenceKey };
}
