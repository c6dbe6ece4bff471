import { createKafkaBus } from "../events/kafka/kafka-bus.ts";
import { kafkaConnection } from "../events/kafka/kafka-config.ts";
import { connectAccount } from "../identity/account-client.ts";
import { createKeyAuthenticator, type KeyAuthenticator, lookUpOverRpc } from "../identity/authenticate.ts";
import { openServiceKeySet } from "../identity/service-key-set.ts";
import { createTokenVerifier, type TokenVerifier } from "../identity/service-token.ts";
import type { RequestLimiter } from "../rate-limit/limiter.ts";
import type { LoadShedder } from "../rate-limit/load-shedder.ts";
import { openLoadShedder } from "../rate-limit/open-load-shedder.ts";
import { openRequestLimiter } from "../rate-limit/open-request-limiter.ts";
import type { readConfig } from "../runtime/config.ts";
import type { Log } from "../runtime/log.ts";
import { measureGenerations } from "../telemetry/metrics-generations.ts";
import { measureLimiter, watchLoad } from "../telemetry/metrics-limits.ts";
import type { MeasuredProcess } from "../telemetry/metrics-process.ts";
import type { generationProcessSpec } from "./generation-process-spec.ts";
import { type OpenPaidRequests, openPaidRequests } from "./open-paid-requests.ts";
import { measureUsageDoubts, watchPaidRequests } from "./paid-metrics.ts";

/** What a process that generates is connected to. */
export interface GenerationProcess {
  readonly paid: OpenPaidRequests;
  readonly limiter: RequestLimiter;
  readonly shedder: LoadShedder;
  readonly authenticateKey: KeyAuthenticator;
  readonly verifyToken: TokenVerifier;
  /** Waits until the events of ended requests are safe, then disconnects. */
  close(): Promise<void>;
}

type GenerationProcessConfig = ReturnType<typeof readConfig<typeof generationProcessSpec>>;

/** How long a process that stops waits for its last events to be safe, milliseconds. */
const flushTimeoutMs = 10_000;

/** Connects to account, Kafka and Redis, each of which may be away. Throws ConfigError for keys that can't be read. */
export async function openGenerationProcess(
  config: GenerationProcessConfig,
  issuer: "speech" | "image",
  log: Log,
  { metrics, loopDelay }: MeasuredProcess,
): Promise<GenerationProcess> {
  const connection = kafkaConnection(config);
  const account = await connectAccount(config, issuer);
  const keys = await openServiceKeySet({ path: config.SERVICE_JWKS_FILE, log });
  const bus = createKafkaBus({ connection, clientId: issuer, log });
  const limiter = measureLimiter(metrics, await openRequestLimiter(config, log));
  const shedder = openLoadShedder(config, loopDelay);
  watchLoad(metrics, shedder);
  const paid = openPaidRequests({
    account,
    bus,
    settleWaitMs: config.SETTLE_WAIT_MS,
    byokFeePercent: config.BYOK_FEE_PERCENT,
    log,
    onEvent: measureGenerations(metrics),
    onUsageDoubt: measureUsageDoubts(metrics),
  });
  watchPaidRequests(metrics, issuer, paid);
  return {
    paid,
    limiter,
    shedder,
    authenticateKey: createKeyAuthenticator({ lookUp: lookUpOverRpc(account) }),
    verifyToken: createTokenVerifier(keys),
    async close() {
      await paid.close(flushTimeoutMs);
      await Promise.all([bus.close(), limiter.close()]);
    },
  };
}
