import { ImageService } from "../gen/media/image/v1/image_service_pb.ts";
import { SpeechService } from "../gen/media/speech/v1/speech_service_pb.ts";
import { connectDatabase } from "../lib/database/connect.ts";
import { migrateToLatest } from "../lib/database/migrate.ts";
import { createGuardedFetch } from "../lib/http/guarded-fetch.ts";
import { createOutboundHttp } from "../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../lib/http/url-guard.ts";
import type { Audience } from "../lib/identity/issuer.ts";
import type { KeyFiles } from "../lib/identity/key-files.ts";
import { readServiceKey } from "../lib/identity/service-key.ts";
import { openServiceKeySet } from "../lib/identity/service-key-set.ts";
import { createTokenSigner, createTokenVerifier } from "../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../lib/identity/token-interceptor.ts";
import { createLocalTransport, createRpcClient } from "../lib/runtime/client.ts";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/process.ts";
import type { RegisterRoutes } from "../lib/runtime/rpc-handler.ts";
import { loadCatalog } from "../providers/catalog-load.ts";
import { createProviders } from "../providers/registry.ts";
import { createAccountService } from "../services/account/account-service.ts";
import { type BootstrapResult, bootstrapAccount, withGeneratedKeys } from "../services/account/bootstrap.ts";
import { readBootstrapKeys } from "../services/account/config.ts";
import { accountMigrations } from "../services/account/migrations.ts";
import type { AccountDatabase, AccountTables } from "../services/account/store.ts";
import { generationSettings } from "../services/image/config.ts";
import { createImageService } from "../services/image/image-service.ts";
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
  const guard = createAddressGuard({ allowedCidrs: config.REFERENCE_ALLOWED_CIDRS });
  const fetchReference = createGuardedFetch({ guard });
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
    await fetchReference.close();
    await http.close();
    await database.destroy();
  };
  try {
    await connectOnce(database);
    await migrateToLatest(database, accountMigrations);
    const verifyToken = createTokenVerifier(await openServiceKeySet({ path: keyFiles.jwksFile, log }));
    const account = createAccountService({ database, log, verifyToken });
    const shared = { catalog, providers, authenticateKey: account.authenticateKey, verifyToken, log };
    const speech = createSpeechService({ ...shared, limits: synthesisLimits(config) });
    const image = createImageService({ ...shared, ...generationSettings(config), fetchReference });
    const signer = createTokenSigner(await readServiceKey(keyFiles.keyFile("gateway"), "gateway"));
    const transport = (audience: Audience, routes: RegisterRoutes) =>
      createLocalTransport(routes, { interceptors: [createTokenInterceptor({ signer, audience })] });
    const clients = {
      authenticate: account.authenticateKey,
      speech: createRpcClient(SpeechService, transport("speech", speech.routes)),
      image: createRpcClient(ImageService, transport("image", image.routes)),
    };
    /** Makes the first account where there is none. Its keys are never told again, so all else must have worked. */
    const makeFirstAccount = (): Promise<BootstrapResult | undefined> =>
      bootstrapAccount(database, bootstrapKeys);
    return { services: [account, speech, image], clients, makeFirstAccount, close };
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
