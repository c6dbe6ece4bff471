import { listenerSpec } from "../gateway/config.ts";
import { kafkaSpec, topicSpec } from "../lib/events/kafka/kafka-config.ts";
import { addressLimitSpec } from "../lib/rate-limit/address-limiter.ts";
import { loadSpec } from "../lib/rate-limit/load-shedder.ts";
import { rateLimitSpec } from "../lib/rate-limit/open-request-limiter.ts";
import {
  booleanVar,
  databaseUrlVar,
  hostPortListVar,
  intVar,
  portVar,
  processSpec,
  readConfig,
  textVar,
  usdVar,
} from "../lib/runtime/config.ts";
import { paidSpec } from "../lib/service/service-spec.ts";
import { bootstrapSpec, moneySpec } from "../services/account/config.ts";
import { receiverSpec } from "../services/destination/config.ts";
import { generationSpec } from "../services/image/config.ts";
import { synthesisSpec } from "../services/speech/config.ts";

/**
 * The variables of the embedded default. What a process of its own would be given, it makes itself: keys, database, and
 * no wait before it stops.
 */
export const standaloneSpec = {
  ...processSpec,
  ...listenerSpec,
  ...synthesisSpec,
  ...generationSpec,
  ...kafkaSpec,
  ...topicSpec,
  ...paidSpec,
  ...rateLimitSpec,
  ...loadSpec,
  ...addressLimitSpec,
  ...moneySpec,
  ...bootstrapSpec,
  ...receiverSpec,
  BOOTSTRAP_CREDIT_USD: usdVar({ default: "10" }),
  BOOTSTRAP_GENERATE_KEYS: booleanVar({ default: true }),
  KAFKA_BROKERS: hostPortListVar({ default: undefined }),
  MASTER_KEYS: textVar({ default: undefined }),
  RPC_PORT: portVar({ default: 8081 }),
  DATA_DIR: textVar({ default: ".data" }),
  DATABASE_URL: databaseUrlVar({ default: undefined }),
  DRAIN_DELAY_MS: intVar(0, 600_000)({ default: 0 }),
  DRAIN_TIMEOUT_MS: intVar(0, 86_400_000)({ default: 10_000 }),
} as const;

/** What the embedded default is configured with, the environment of its providers included. */
export type StandaloneConfig = ReturnType<typeof readStandaloneConfig>;

/** Reads the environment. Throws ConfigError. */
export function readStandaloneConfig(environment: NodeJS.ProcessEnv = process.env) {
  return { ...readConfig(standaloneSpec, environment), environment };
}
