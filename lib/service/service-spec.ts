import { kafkaSpec } from "../events/kafka/kafka-config.ts";
import { addressLimitSpec } from "../rate-limit/address-limiter.ts";
import { loadSpec } from "../rate-limit/load-shedder.ts";
import { rateLimitSpec } from "../rate-limit/open-request-limiter.ts";
import { tlsSpec } from "../rpc/port/tls-files.ts";
import {
  type ConfigSpec,
  databaseUrlVar,
  httpUrlVar,
  intVar,
  listVar,
  millisecondsVar,
  portVar,
  processSpec,
  textVar,
} from "../runtime/config.ts";

/** The variables of every service as a process of its own; its port is the one unless set. */
export const serviceSpec = <P extends number>(port: P) =>
  ({
    ...processSpec,
    ...tlsSpec,
    ...kafkaSpec,
    ...addressLimitSpec,
    HOST: textVar({ default: "localhost" }),
    PORT: portVar({ default: port }),
    CORS_ORIGINS: listVar({ default: [] }),
    DRAIN_TIMEOUT_MS: millisecondsVar({ default: 15_000 }),
    SERVICE_JWKS_FILE: textVar(),
  }) as const satisfies ConfigSpec;

/** Of services that keep something. */
export const databaseSpec = { DATABASE_URL: databaseUrlVar() } as const satisfies ConfigSpec;

/** Of services that keep secrets. A secret: see readMasterKeys. */
export const sealingSpec = { MASTER_KEYS: textVar() } as const satisfies ConfigSpec;

/** Of processes that ask account. */
export const callerSpec = {
  ACCOUNT_URL: httpUrlVar({ default: "http://localhost:8103" }),
  SERVICE_KEY_FILE: textVar(),
} as const satisfies ConfigSpec;

/** Of services that remember; one day goes to clocks that differ. */
export const retentionSpec = {
  USAGE_RETENTION_DAYS: intVar(2, 36_500)({ default: 400 }),
} as const satisfies ConfigSpec;

/** Of paid requests. */
export const paidSpec = {
  /** Longest wait of an answer's end for its event to be safe. */
  SETTLE_WAIT_MS: intVar(0, 60_000)({ default: 500 }),
  /** What a request costs that an own provider key serves, percent of its list price. */
  BYOK_FEE_PERCENT: intVar(0, 100)({ default: 5 }),
} as const;

/** Of the processes that generate. */
export const generatorSpec = <P extends number>(port: P) =>
  ({
    ...serviceSpec(port),
    ...callerSpec,
    ...paidSpec,
    ...rateLimitSpec,
    ...loadSpec,
    DRAIN_TIMEOUT_MS: drainTimeoutVar,
  }) as const satisfies ConfigSpec;

/** Where requests may take long: as long as the longest and a little, unless the operator says else. */
export const drainTimeoutVar = intVar(0, 86_400_000)({ default: undefined });

/** What a drain waits for beyond the longest request, milliseconds. */
const drainGraceMs = 5000;

/** What says how long a drain may take. */
export interface DrainConfig {
  readonly DRAIN_TIMEOUT_MS: number | undefined;
  readonly SPEECH_TIMEOUT_MS?: number;
  readonly IMAGE_TIMEOUT_MS?: number;
}

/** How long a drain may take, milliseconds: the operator's choice, else the longest request and a little. */
export function drainTimeoutMs(config: DrainConfig): number {
  const { DRAIN_TIMEOUT_MS: chosen, SPEECH_TIMEOUT_MS: speechMs = 0, IMAGE_TIMEOUT_MS: imageMs = 0 } = config;
  return chosen ?? Math.max(speechMs, imageMs) + drainGraceMs;
}
