import { join } from "node:path";
import { createLocalClients, type GatewayClients } from "../gateway/clients.ts";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { RunningGenerations } from "../lib/generation/running-generations.ts";
import type { Audience, Issuer } from "../lib/identity/issuer.ts";
import type { KeyFiles } from "../lib/identity/key-files.ts";
import { readServiceKey } from "../lib/identity/service-key.ts";
import { openServiceKeySet } from "../lib/identity/service-key-set.ts";
import { createTokenSigner, createTokenVerifier, type TokenSigner } from "../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../lib/identity/token-interceptor.ts";
import { createLocalTransport, createRpcClient } from "../lib/rpc/client.ts";
import { ensureMasterKeys } from "../lib/secrets/master-key-file.ts";
import type { Host } from "../lib/service/host.ts";
import { openLimits, type ProcessLimits } from "../lib/service/open-limits.ts";
import type { Service, ServiceHost } from "../lib/service/run-service.ts";
import { openProviders } from "../providers/registry.ts";
import type { AccountService } from "../services/account/accounts/account-service.ts";
import {
  type BootstrapKeys,
  bootstrapDatabase,
  unknownKeys,
} from "../services/account/accounts/bootstrap.ts";
import { readBootstrapKeys } from "../services/account/config.ts";
import { openAccount } from "../services/account/open-account.ts";
import { openDestination } from "../services/destination/open-destination.ts";
import { openImage } from "../services/image/open-image.ts";
import { openSpeech } from "../services/speech/open-speech.ts";
import { openUsage } from "../services/usage/open-usage.ts";
import type { StandaloneConfig } from "./config.ts";
import { openLocalBus } from "./local-bus.ts";
import { migrateSchemas } from "./schemas.ts";

/** What the services of one process are made from besides its configuration. */
interface LocalGround {
  readonly databaseUrl: string;
  readonly keyFiles: KeyFiles;
}

/** All services in this process, with the clients that the gateway calls them by. */
export interface LocalServices extends ProcessLimits {
  readonly services: readonly Service[];
  readonly clients: GatewayClients;
  /** The generations that are under way, those whose callers have left included. */
  readonly running: RunningGenerations;
  /**
   * Makes the first account where there is none. Keys that were generated are never shown again, so all else must have
   * worked.
   */
  makeFirstAccount(): Promise<BootstrapKeys | undefined>;
  /** A code by which the console signs in to the only account; undefined where there are several. */
  makeConsoleCode(): Promise<string | undefined>;
}

/** Brings the schemas up to date, makes the services over them and starts what works in the background. */
export async function openLocalServices(
  host: Host,
  config: StandaloneConfig,
  { databaseUrl, keyFiles }: LocalGround,
): Promise<LocalServices> {
  const firstAccount = readBootstrapKeys(config);
  const { log } = host;
  await migrateSchemas(databaseUrl, log);
  const bus = await openLocalBus({ config, databaseUrl, log });
  host.onStop(() => bus.close());
  const verifyToken = createTokenVerifier(await openServiceKeySet({ path: keyFiles.jwksFile, log }));
  const beside = (name: Audience): ServiceHost => ({
    ...host,
    name,
    bus,
    verifyToken,
    connectAccount: () => connectAccount(account, keyFiles, name),
  });
  const MASTER_KEYS = config.MASTER_KEYS ?? (await ensureMasterKeys(masterKeyFile(config)));
  const complete = { ...config, DATABASE_URL: databaseUrl, MASTER_KEYS };
  const founded = Promise.withResolvers<void>();
  const account = await openAccount(beside("account"), complete, founded.promise);
  const usage = await openUsage(beside("usage"), complete);
  const destination = await openDestination(beside("destination"), complete);
  for (const service of [account, usage, destination]) start(host, service);
  const limits = await openLimits(host, config);
  const parts = { ...(await openProviders(host, config)), ...limits, running: new RunningGenerations() };
  const speech = await openSpeech(beside("speech"), complete, parts);
  const image = await openImage(beside("image"), complete, parts);
  const services = { account, usage, destination, speech, image };
  const clients = createLocalClients(services, await signerOf("gateway", keyFiles));
  return {
    ...limits,
    running: parts.running,
    services: Object.values(services),
    clients: { ...clients, authenticate: account.authenticateKey },
    async makeFirstAccount() {
      const generateKeys = config.BOOTSTRAP_GENERATE_KEYS;
      const made = await bootstrapDatabase(databaseUrl, firstAccount, { generateKeys });
      founded.resolve();
      return generateKeys ? made && unknownKeys(made, firstAccount) : undefined;
    },
    makeConsoleCode: () => account.makeConsoleCode("start"),
  };
}

async function connectAccount(
  { routes, authenticateKey }: AccountService,
  keyFiles: KeyFiles,
  name: Audience,
): ReturnType<ServiceHost["connectAccount"]> {
  const signer = await signerOf(name, keyFiles);
  const interceptors = [createTokenInterceptor({ signer, audience: "account" })];
  const transport = createLocalTransport(routes, { interceptors });
  return { account: createRpcClient(AccountInternalService, transport), authenticateKey };
}

async function signerOf(name: Issuer, keyFiles: KeyFiles): Promise<TokenSigner> {
  return createTokenSigner(await readServiceKey(keyFiles.keyFile(name), name));
}

/** Begins what a service does in the background; the process can't go on without taking in events. */
function start(host: Host, service: Service): void {
  service.start?.();
  host.onStop(async () => service.stop?.());
  void service.consumer?.failed.then(() => host.fail());
}

function masterKeyFile({ DATA_DIR }: StandaloneConfig): string {
  return join(DATA_DIR, "keys", "master-keys");
}
