/**
 * Runs a service as a process of its own.
 *
 * 1. It starts in the order in which its parts need each other, and stops in the opposite one: unready, the calls and
 *    what goes on in the background come to their ends, events are flushed, connections are closed.
 * 2. Account, Kafka, Redis and the database may be away when it starts.
 * 3. When events can't be taken in for good, it stops and exits with 1.
 */
import type { EventConsumer } from "../events/batch-consumer.ts";
import type { Bus } from "../events/bus.ts";
import { createKafkaBus } from "../events/kafka/kafka-bus.ts";
import { kafkaConnection } from "../events/kafka/kafka-config.ts";
import { type AccountClient, connectAccount } from "../identity/account-client.ts";
import { createKeyAuthenticator, type KeyAuthenticator, lookUpOverRpc } from "../identity/authenticate.ts";
import type { Audience } from "../identity/issuer.ts";
import { openServiceKeySet } from "../identity/service-key-set.ts";
import { createTokenVerifier, type TokenVerifier } from "../identity/service-token.ts";
import { readTlsFiles } from "../rpc/port/tls-files.ts";
import { type RpcServerOptions, startRpcServer } from "../rpc/server.ts";
import type { ConfigOf } from "../runtime/config.ts";
import { logListening } from "../runtime/listening.ts";
import { type Host, runHosted } from "./host.ts";
import { type callerSpec, type DrainConfig, drainTimeoutMs, type serviceSpec } from "./service-spec.ts";

/** What a service has to be put on a port. */
export interface Service extends Pick<RpcServerOptions, "services" | "routes" | "readiness" | "running"> {
  /** Begins what goes on in the background; once. */
  start?(): void;
  /** Ends what `start` began, when the part under way has ended. */
  stop?(): Promise<void>;
  /** Undefined before `start`. */
  readonly consumer?: EventConsumer | undefined;
}

/** What a service stands on, in a process of its own as well as beside others. */
export interface ServiceHost extends Host {
  readonly bus: Bus;
  readonly verifyToken: TokenVerifier;
  /** What account answers to this service, and whom keys speak for. */
  connectAccount(): Promise<{ readonly account: AccountClient; readonly authenticateKey: KeyAuthenticator }>;
}

type ServiceConfig = Omit<ConfigOf<ReturnType<typeof serviceSpec>>, "DRAIN_TIMEOUT_MS"> &
  DrainConfig &
  Partial<ConfigOf<typeof callerSpec>>;

interface ServiceProcess<C extends ServiceConfig> {
  readonly name: Audience;
  /** Throws ConfigError. */
  readConfig(): C;
  open(host: ServiceHost, config: NoInfer<C>): Service | Promise<Service>;
}

/** Runs a service until it is told to stop; see the head of the file. */
export function runService<C extends ServiceConfig>({
  name,
  readConfig,
  open,
}: ServiceProcess<C>): Promise<void> {
  return runHosted({
    name,
    readConfig,
    async start(host, config) {
      const service = await open(await openServiceHost(host, name, config), config);
      await serve(host, config, service);
    },
  });
}

async function openServiceHost(host: Host, name: Audience, config: ServiceConfig): Promise<ServiceHost> {
  const { log } = host;
  const keys = await openServiceKeySet({ path: config.SERVICE_JWKS_FILE, log });
  const bus = createKafkaBus({ connection: kafkaConnection(config), clientId: name, log }); // 2.
  host.onStop(() => bus.close());
  return {
    ...host,
    bus,
    verifyToken: createTokenVerifier(keys),
    async connectAccount() {
      const { ACCOUNT_URL, SERVICE_KEY_FILE } = config;
      if (ACCOUNT_URL === undefined || SERVICE_KEY_FILE === undefined)
        throw new Error(`${name} is told of no account`);
      const account = await connectAccount({ ACCOUNT_URL, SERVICE_KEY_FILE }, name);
      return { account, authenticateKey: createKeyAuthenticator({ lookUp: lookUpOverRpc(account) }) };
    },
  };
}

async function serve(host: Host, config: ServiceConfig, service: Service): Promise<void> {
  const { log, loopDelay, metrics } = host;
  const { services, routes, readiness, running } = service;
  const server = await startRpcServer({
    services,
    routes,
    readiness,
    running,
    host: config.HOST,
    port: config.PORT,
    tls: await readTlsFiles(config),
    corsOrigins: config.CORS_ORIGINS,
    metrics: metrics.answer,
    loopDelay,
    log,
  });
  const drain = { delayMs: config.DRAIN_DELAY_MS, timeoutMs: drainTimeoutMs(config) };
  host.onStop(() => Promise.all([server.drain(drain), service.stop?.()])); // 1.
  service.start?.();
  void service.consumer?.failed.then(() => host.fail()); // 3.
  logListening(log, "rpc", config.HOST, server.port);
}
