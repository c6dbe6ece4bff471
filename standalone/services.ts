import { join } from "node:path";
import type { Client } from "@connectrpc/connect";
import { createLocalClients } from "../gateway/clients.ts";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { openPaidRequests } from "../lib/generation/open-paid-requests.ts";
import { measureUsageDoubts, watchPaidRequests } from "../lib/generation/paid-metrics.ts";
import { RunningGenerations } from "../lib/generation/running-generations.ts";
import { createGuardedFetch } from "../lib/http/guarded-fetch.ts";
import { createAddressGuard } from "../lib/http/url-guard.ts";
import type { KeyAuthenticator } from "../lib/identity/authenticate.ts";
import type { KeyFiles } from "../lib/identity/key-files.ts";
import { readServiceKey } from "../lib/identity/service-key.ts";
import { openServiceKeySet } from "../lib/identity/service-key-set.ts";
import { createTokenSigner, createTokenVerifier } from "../lib/identity/service-token.ts";
import type { Strangers } from "../lib/identity/stranger.ts";
import { createTokenInterceptor } from "../lib/identity/token-interceptor.ts";
import { openLoadShedder } from "../lib/rate-limit/open-load-shedder.ts";
import { openRequestLimiter } from "../lib/rate-limit/open-request-limiter.ts";
import { createLocalTransport, createRpcClient } from "../lib/rpc/client.ts";
import type { Log } from "../lib/runtime/log.ts";
import type { LoopDelay } from "../lib/runtime/loop-delay.ts";
import type { Tracer } from "../lib/runtime/span.ts";
import { ensureMasterKeys } from "../lib/secrets/master-key-file.ts";
import { readMasterKeys } from "../lib/secrets/master-keys.ts";
import { createSealer } from "../lib/secrets/seal.ts";
import type { Metrics } from "../lib/telemetry/metrics.ts";
import { watchPools } from "../lib/telemetry/metrics-database.ts";
import { measureGenerations } from "../lib/telemetry/metrics-generations.ts";
import { measureLimiter, watchLoad } from "../lib/telemetry/metrics-limits.ts";
import { openProviders } from "../providers/registry.ts";
import { watchEngines } from "../providers/routing/upstream-metrics.ts";
import { type AccountService, createAccountService } from "../services/account/accounts/account-service.ts";
import {
  type BootstrapKeys,
  bootstrapAccount,
  unknownKeys,
  withGeneratedKeys,
} from "../services/account/accounts/bootstrap.ts";
import { accountLimits, readBootstrapKeys } from "../services/account/config.ts";
import type { AccountDatabase } from "../services/account/store.ts";
import { openReceivers } from "../services/destination/delivery/receivers.ts";
import { createDestinationService } from "../services/destination/settings/destination-service.ts";
import { destinationTypes } from "../services/destination/types/registry.ts";
import { generationSettings } from "../services/image/config.ts";
import { createImageService } from "../services/image/image-service.ts";
import { synthesisLimits } from "../services/speech/config.ts";
import { createSpeechService } from "../services/speech/speech-service.ts";
import { createUsageService } from "../services/usage/usage-service.ts";
import type { StandaloneConfig } from "./config.ts";
import { openLocalDatabases } from "./databases.ts";
import { openLocalBus } from "./local-bus.ts";
import { Teardown } from "./teardown.ts";

/** What the services of one process are made from. */
export interface LocalServicesOptions {
  readonly config: StandaloneConfig;
  readonly databaseUrl: string;
  readonly keyFiles: KeyFiles;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  /** Is told of the requests that run. */
  readonly loopDelay: LoopDelay;
  /** Counts who comes without a good key. */
  readonly strangers: Strangers;
}

/** All services in this process, with the clients that the gateway calls them by. */
export type LocalServices = Awaited<ReturnType<typeof createLocalServices>>;

/** How long a process that stops waits for its last events to be safe, milliseconds. */
const flushTimeoutMs = 10_000;

/** Brings the schemas up to date, makes the services over them and starts what works in the background. */
export async function createLocalServices(options: LocalServicesOptions) {
  const teardown = new Teardown(options.log);
  try {
    return await create(options, teardown);
  } catch (thrown) {
    await teardown.run();
    throw thrown;
  }
}

async function create(options: LocalServicesOptions, teardown: Teardown) {
  const { config, keyFiles } = options;
  const founding = readFounding(config);
  const foundation = await openFoundation(options, teardown);
  const { account, usage } = createBooks(options, foundation, founding.founded);
  const { authenticateKey } = account;
  const destination = createDestination(options, foundation, authenticateKey, teardown);
  for (const service of [account, usage, destination]) {
    service.start();
    teardown.add(() => service.stop());
  }
  const generators = await createGenerators({
    ...options,
    ...foundation,
    authenticateKey,
    account,
    teardown,
  });
  const { limiter, shedder, running, speech, image } = generators;
  const signer = createTokenSigner(await readServiceKey(keyFiles.keyFile("gateway"), "gateway"));
  const clients = createLocalClients(
    {
      account: account.routes,
      speech: speech.routes,
      image: image.routes,
      usage: usage.routes,
      destination: destination.routes,
    },
    signer,
  );
  const services = [account, speech, image, usage, destination];
  const consumers = [account, usage, destination]
    .map(({ consumer }) => consumer)
    .filter((consumer) => consumer !== undefined);
  return {
    services,
    clients: { ...clients, authenticate: authenticateKey },
    limiter,
    shedder,
    /** The generations that are under way, those whose callers have left included. */
    running,
    /** Settles with the reason when events can't be taken in for good: the process can't go on. */
    failed: Promise.race(consumers.map(({ failed }) => failed)),
    /** Makes the first account where there is none. Its keys are never told again, so all else must have worked. */
    makeFirstAccount: () => founding.make(foundation.databases.account),
    /** The problems of all services. */
    readiness: async () => (await Promise.all(services.map(({ readiness }) => readiness()))).flat(),
    close: () => teardown.run(),
  };
}

/**
 * The making of the first account as it is configured, which resolves with those of its keys that nobody gave; keys that
 * are not known wait for it. Throws ConfigError.
 */
function readFounding(config: StandaloneConfig) {
  const given = readBootstrapKeys(config);
  const { promise: founded, resolve } = Promise.withResolvers<void>();
  const make = async (database: AccountDatabase): Promise<BootstrapKeys | undefined> => {
    const made = await bootstrapAccount(database, withGeneratedKeys(given));
    resolve();
    return made && unknownKeys(made, given);
  };
  return { founded, make };
}

type Foundation = Awaited<ReturnType<typeof openFoundation>>;

/** What the services stand on. */
async function openFoundation(
  { config, databaseUrl, keyFiles, log, metrics }: LocalServicesOptions,
  teardown: Teardown,
) {
  const databases = await openLocalDatabases(databaseUrl, log, watchPools(metrics));
  teardown.add(databases.close);
  const bus = await openLocalBus({ config, databaseUrl, log });
  teardown.add(() => bus.close());
  const offer = await openProviders({
    environment: config.environment,
    catalogDirectory: config.CATALOG_DIR,
    log,
  });
  teardown.add(offer.close);
  watchEngines(metrics, offer.providers);
  const verifyToken = createTokenVerifier(await openServiceKeySet({ path: keyFiles.jwksFile, log }));
  return { databases, bus, offer, verifyToken, sealer: await localSealer(config) };
}

/** The services that keep what was used and what it cost. */
function createBooks(
  { config, log, metrics, tracer, strangers }: LocalServicesOptions,
  foundation: Foundation,
  founded: Promise<void>,
) {
  const { databases, bus, offer, verifyToken, sealer } = foundation;
  const account = createAccountService({
    database: databases.account,
    bus,
    limits: accountLimits(config),
    founded,
    providerKeys: { sealer, providerSlugs: offer.providers.ownKeySlugs },
    verifyToken,
    strangers,
    log,
    metrics,
    tracer,
  });
  const usage = createUsageService({
    database: databases.usage,
    bus,
    retentionDays: config.USAGE_RETENTION_DAYS,
    authenticateKey: account.authenticateKey,
    verifyToken,
    strangers,
    log,
    metrics,
    tracer,
  });
  return { account, usage };
}

/** The service that hands events on to where customers want them. */
function createDestination(
  { config, log, tracer, metrics, strangers }: LocalServicesOptions,
  { databases, bus, verifyToken, sealer }: Foundation,
  authenticateKey: KeyAuthenticator,
  teardown: Teardown,
) {
  const receivers = openReceivers({ allowedCidrs: config.DESTINATION_ALLOWED_CIDRS });
  teardown.add(() => receivers.close());
  return createDestinationService({
    database: databases.destination,
    bus,
    types: destinationTypes,
    sealer,
    receivers,
    retentionDays: config.USAGE_RETENTION_DAYS,
    authenticateKey,
    verifyToken,
    strangers,
    log,
    tracer,
    metrics,
  });
}

interface GeneratorsOptions extends LocalServicesOptions, Foundation {
  readonly authenticateKey: KeyAuthenticator;
  readonly account: AccountService;
  readonly teardown: Teardown;
}

async function createGenerators(options: GeneratorsOptions) {
  const { config, keyFiles, log, metrics, offer, account, bus, teardown } = options;
  const limiter = measureLimiter(metrics, await openRequestLimiter(config, log));
  const onEvent = measureGenerations(metrics);
  const onUsageDoubt = measureUsageDoubts(metrics);
  teardown.add(() => limiter.close());
  const shedder = openLoadShedder(config, options.loopDelay);
  watchLoad(metrics, shedder);
  const running = new RunningGenerations();
  const paidBy = async (issuer: "speech" | "image") => {
    const paid = openPaidRequests({
      account: await localAccount(account, keyFiles, issuer),
      bus,
      settleWaitMs: config.SETTLE_WAIT_MS,
      byokFeePercent: config.BYOK_FEE_PERCENT,
      log,
      onEvent,
      onUsageDoubt,
      running,
    });
    watchPaidRequests(metrics, issuer, paid);
    teardown.add(() => paid.close(flushTimeoutMs));
    return paid;
  };
  const shared = { ...options, ...offer, limiter, shedder };
  const speech = createSpeechService({
    ...shared,
    paid: await paidBy("speech"),
    limits: synthesisLimits(config),
  });
  const guard = createAddressGuard({ allowedCidrs: config.REFERENCE_ALLOWED_CIDRS });
  const fetchReference = createGuardedFetch({ guard });
  teardown.add(() => fetchReference.close());
  const settings = generationSettings(config);
  const image = createImageService({ ...shared, ...settings, paid: await paidBy("image"), fetchReference });
  return { limiter, shedder, running, speech, image };
}

async function localSealer({ MASTER_KEYS, DATA_DIR }: StandaloneConfig) {
  const keys =
    MASTER_KEYS === undefined
      ? await ensureMasterKeys(join(DATA_DIR, "keys", "master-keys"))
      : readMasterKeys(MASTER_KEYS);
  return createSealer(keys);
}

async function localAccount(
  { routes }: AccountService,
  keyFiles: KeyFiles,
  issuer: "speech" | "image",
): Promise<Client<typeof AccountInternalService>> {
  const signer = createTokenSigner(await readServiceKey(keyFiles.keyFile(issuer), issuer));
  const interceptors = [createTokenInterceptor({ signer, audience: "account" })];
  return createRpcClient(AccountInternalService, createLocalTransport(routes, { interceptors }));
}
