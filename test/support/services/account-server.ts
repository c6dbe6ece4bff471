import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import type { Client, Interceptor } from "@connectrpc/connect";
import { AccountAdminService } from "../../../gen/media/account/v1/account_admin_service_pb.ts";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import { connectAccount } from "../../../lib/identity/account-client.ts";
import { createKeyAuthenticator, lookUpOverRpc } from "../../../lib/identity/authenticate.ts";
import type { Audience, Issuer } from "../../../lib/identity/issuer.ts";
import { ensureKeyFiles, type KeyFiles } from "../../../lib/identity/key-files.ts";
import { readServiceKey } from "../../../lib/identity/service-key.ts";
import { openServiceKeySet } from "../../../lib/identity/service-key-set.ts";
import { createTokenSigner, createTokenVerifier } from "../../../lib/identity/service-token.ts";
import { createRemoteTransport, createRpcClient } from "../../../lib/rpc/client.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { type Log, silentLog } from "../../../lib/runtime/log.ts";
import { readMasterKeys } from "../../../lib/secrets/master-keys.ts";
import { createSealer } from "../../../lib/secrets/seal.ts";
import { createAccountService } from "../../../services/account/accounts/account-service.ts";
import { accountMigrations } from "../../../services/account/migrations.ts";
import type { MoneyTotals } from "../../../services/account/money/money-totals.ts";
import type { ProviderKeyOptions } from "../../../services/account/provider-keys/provider-key-rpc.ts";
import type { AccountDatabase, AccountTables } from "../../../services/account/store.ts";
import { awayBus } from "../../fakes/away-bus.ts";
import { createTestDatabase } from "../postgres/database.ts";

/** The account service on a database of its own, reached over a socket. */
export interface TestAccountServer {
  readonly url: string;
  readonly databaseUrl: string;
  readonly database: AccountDatabase;
  readonly keyFiles: KeyFiles;
  /** All amounts and counts of holds. */
  moneyTotals(): Promise<MoneyTotals>;
  /** An Authorization header with a token of an issuer; the operator is `ada`. */
  tokenOf(issuer: Issuer, audience?: Audience): Promise<string>;
  /** A client that sends this Authorization header. */
  client<S extends DescService>(service: S, authorization?: string): Client<S>;
  /** A client with an admin token. */
  admin(): Promise<Client<typeof AccountAdminService>>;
  close(): Promise<void>;
}

/** What provider keys are kept with unless something else is given. */
export const testProviderKeys: ProviderKeyOptions = {
  sealer: createSealer(readMasterKeys(`test:${Buffer.alloc(32, 7).toString("base64")}`)),
  providerSlugs: async () => ["openai", "elevenlabs"],
};

/** Starts the account service on a fresh database that is migrated. */
export async function startTestAccountServer(
  log: Log = silentLog,
  providerKeys = testProviderKeys,
): Promise<TestAccountServer> {
  const folder = await mkdtemp(join(tmpdir(), "account-"));
  const keyFiles = await ensureKeyFiles(folder);
  const { url: databaseUrl, drop } = await createTestDatabase();
  const { schema } = accountMigrations;
  const database = connectDatabase<AccountTables>({ url: databaseUrl, schema, log });
  await migrateToLatest(database, accountMigrations);
  const keys = await openServiceKeySet({ path: keyFiles.jwksFile, log });
  const account = createAccountService({
    database,
    bus: awayBus,
    providerKeys,
    limits: { holdGraceMs: 300_000, unseenGraceMs: 30_000, retentionDays: 400, maxRateLimitPerMinute: 6000 },
    log,
    verifyToken: createTokenVerifier(keys),
  });
  const { services, routes, readiness } = account;
  const server = await startRpcServer({ host: "127.0.0.1", port: 0, services, routes, readiness, log });
  const url = `http://127.0.0.1:${server.port}`;
  const client = clientsOf(url);
  const tokenOf: TestAccountServer["tokenOf"] = async (issuer, audience = "account") => {
    const key = await readServiceKey(keyFiles.keyFile(issuer), issuer);
    return `Bearer ${await createTokenSigner(key, issuer === "operator" ? "ada" : "").sign(audience)}`;
  };
  return {
    url,
    databaseUrl,
    database,
    keyFiles,
    moneyTotals: account.moneyTotals,
    tokenOf,
    client,
    admin: async () => client(AccountAdminService, await tokenOf("operator")),
    async close() {
      await server.drain({ delayMs: 0, timeoutMs: 1000 });
      await database.destroy();
      await drop();
      await rm(folder, { recursive: true });
    },
  };
}

/** How a service learns who calls it, as a process of its own does. */
export async function identityOf({ keyFiles, url }: TestAccountServer, issuer: Issuer, log: Log) {
  const config = { ACCOUNT_URL: url, SERVICE_KEY_FILE: keyFiles.keyFile(issuer) };
  const lookUp = lookUpOverRpc(await connectAccount(config, issuer));
  const keys = await openServiceKeySet({ path: keyFiles.jwksFile, log });
  return { authenticateKey: createKeyAuthenticator({ lookUp }), verifyToken: createTokenVerifier(keys) };
}

/** Clients of services at a port that send an Authorization header, if one is given. */
export function clientsOf(baseUrl: string): TestAccountServer["client"] {
  return (service, authorization) => {
    const authorize: Interceptor = (next) => (request) => {
      if (authorization !== undefined) request.header.set("authorization", authorization);
      return next(request);
    };
    return createRpcClient(service, createRemoteTransport({ baseUrl, interceptors: [authorize] }));
  };
}
