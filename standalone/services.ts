import { SpeechService } from "../gen/media/speech/v1/speech_service_pb.ts";
import { connectDatabase } from "../lib/database/connect.ts";
import { migrateToLatest } from "../lib/database/migrate.ts";
import { createOutboundHttp } from "../lib/http/outbound-fetch.ts";
import type { KeyFiles } from "../lib/identity/key-files.ts";
import { readServiceKey } from "../lib/identity/service-key.ts";
import { openServiceKeySet } from "../lib/identity/service-key-set.ts";
import { createTokenSigner, createTokenVerifier } from "../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../lib/identity/token-interceptor.ts";
import { createLocalTransport, createRpcClient } from "../lib/runtime/client.ts";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/process.ts";
import { loadCatalog } from "../providers/catalog-load.ts";
import { createProviders } from "../providers/registry.ts";
import { createAccountService } from "../services/account/account-service.ts";
import { type BootstrapResult, bootstrapAccount, withGeneratedKeys } from "../services/account/bootstrap.ts";
import { readBootstrapKeys } from "../services/account/config.ts";
import { accountMigrations } from "../services/account/migrations.ts";
import type { AccountDatabase, AccountTables } from "../services/account/store.ts";
import { catalogDirectories, synthesisLimits } from "../services/speech/config.ts";
import { createSpeechService } from "../services/speech/speech-service.ts";
import type { StandaloneConfig } from "./config.ts";

/** What the services of one process are made from. */
export interface LocalServicesOptions {
  readonly config: StandaloneConfig;
  readonly databaseUrl: string;
  readonly keyFiles: KeyFiles;
  readonly log: Log;
}

/** All services in this process, with the clients that the gateway calls them by. */
export type LocalServices = Awaited<ReturnType<typeof createLocalServices>>;

/** Brings the schemas up to date and makes the services over them. */
export async function createLocalServices({ config, databaseUrl, keyFiles, log }: LocalServicesOptions) {
  const bootstrapKeys = withGeneratedKeys(readBootstrapKeys(config));
  const http = createOutboundHttp();
  const providers = createProviders({ environment: config.environment, http, log });
  const catalog = await loadCatalog({
    directories: catalogDirectories(config),
    providerSlugs: providers.slugs,
  });
  const database = connectDatabase<AccountTables>({
    url: databaseUrl,
    schema: accountMigrations.schema,
    log,
  });
  const close = async () => {
    await providers.close();
    await http.close();
    await database.destroy();
  };
  try {
    await connectOnce(database);
    await migrateToLatest(database, accountMigrations);
    const verifyToken = createTokenVerifier(await openServiceKeySet({ path: keyFiles.jwksFile, log }));
    const account = createAccountService({ database, log, verifyToken });
    const speech = createSpeechService({
      catalog,
      providers,
      limits: synthesisLimits(config),
      authenticateKey: account.authenticateKey,
      verifyToken,
      log,
    });
    const signer = createTokenSigner(await readServiceKey(keyFiles.keyFile("gateway"), "gateway"));
    const interceptors = [createTokenInterceptor({ signer, audience: "speech" })];
    const clients = {
      authenticate: account.authenticateKey,
      speech: createRpcClient(SpeechService, createLocalTransport(speech.routes, { interceptors })),
    };
    /** Makes the first account where there is none. Its keys are never told again, so all else must have worked. */
    const makeFirstAccount = (): Promise<BootstrapResult | undefined> =>
      bootstrapAccount(database, bootstrapKeys);
    return { services: [account, speech], clients, makeFirstAccount, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** A database that can't be reached or entered is the operator's to mend. Throws StartError. */
async function connectOnce(database: AccountDatabase): Promise<void> {
  try {
    await database.connection().execute(async () => undefined);
  } catch (thrown) {
    const { message, code } = thrown as NodeJS.ErrnoException;
    throw new StartError(`the database can't be used (${message || code}); see DATABASE_URL`, {
      cause: thrown,
    });
  }
}
