import { kafkaSpec } from "../../lib/events/kafka/kafka-config.ts";
import { addressLimitSpec } from "../../lib/rate-limit/address-limiter.ts";
import { tlsSpec } from "../../lib/rpc/port/tls-files.ts";
import {
  type ConfigSpec,
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

/** How long records are kept; standalone reads it too. One day goes to clocks that differ. */
export const retentionSpec = {
  USAGE_RETENTION_DAYS: intVar(2, 36_500)({ default: 400 }),
} as const satisfies ConfigSpec;

/** The variables of the usage service. */
export const usageSpec = {
  ...processSpec,
  ...kafkaSpec,
  ...addressLimitSpec,
  ...retentionSpec,
  ...tlsSpec,
  HOST: textVar({ default: "localhost" }),
  PORT: portVar({ default: 8104 }),
  CORS_ORIGINS: listVar({ default: [] }),
  DATABASE_URL: databaseUrlVar(),
  DRAIN_TIMEOUT_MS: millisecondsVar({ default: 15_000 }),
  ACCOUNT_URL: httpUrlVar({ default: "http://localhost:8103" }),
  SERVICE_KEY_FILE: textVar(),
  SERVICE_JWKS_FILE: textVar(),
} as const satisfies ConfigSpec;

/** What the usage service is configured with. */
export type UsageConfig = ReturnType<typeof readUsageConfig>;

/** Reads the environment. Throws ConfigError. */
export function readUsageConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(usageSpec, env);
}
