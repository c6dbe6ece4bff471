import { kafkaSpec } from "../../lib/events/kafka/kafka-config.ts";
import { addressLimitSpec } from "../../lib/rate-limit/address-limiter.ts";
import { tlsSpec } from "../../lib/rpc/port/tls-files.ts";
import {
  type ConfigSpec,
  cidrListVar,
  databaseUrlVar,
  httpUrlVar,
  intVar,
  listVar,
  millisecondsVar,
  portVar,
  processSpec,
  readConfig,
  textVar,
} from "../../lib/runtime/config.ts";

/** Where destinations may lead; standalone reads it too. */
export const receiverSpec = {
  DESTINATION_ALLOWED_CIDRS: cidrListVar({ default: [] }),
} as const satisfies ConfigSpec;

/** The variables of the destination service. */
export const destinationSpec = {
  ...processSpec,
  ...kafkaSpec,
  ...addressLimitSpec,
  ...receiverSpec,
  ...tlsSpec,
  HOST: textVar({ default: "localhost" }),
  PORT: portVar({ default: 8105 }),
  CORS_ORIGINS: listVar({ default: [] }),
  DATABASE_URL: databaseUrlVar(),
  DRAIN_TIMEOUT_MS: millisecondsVar({ default: 15_000 }),
  /** One day goes to clocks that differ. */
  USAGE_RETENTION_DAYS: intVar(2, 36_500)({ default: 400 }),
  ACCOUNT_URL: httpUrlVar({ default: "http://localhost:8103" }),
  /** A secret: see readMasterKeys. */
  MASTER_KEYS: textVar(),
  SERVICE_KEY_FILE: textVar(),
  SERVICE_JWKS_FILE: textVar(),
} as const satisfies ConfigSpec;

/** What the destination service is configured with. */
export type DestinationConfig = ReturnType<typeof readDestinationConfig>;

/** Reads the environment. Throws ConfigError. */
export function readDestinationConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(destinationSpec, env);
}
