import { kafkaSpec } from "../../lib/events/kafka/kafka-config.ts";
import { isApiKey } from "../../lib/identity/api-key.ts";
import { parseUsd } from "../../lib/money/nano-usd.ts";
import { addressLimitSpec } from "../../lib/rate-limit/address-limiter.ts";
import {
  keyRateCeiling,
  type RateCeilingConfig,
  rateCeilingSpec,
} from "../../lib/rate-limit/open-request-limiter.ts";
import { tlsSpec } from "../../lib/rpc/port/tls-files.ts";
import {
  ConfigError,
  databaseUrlVar,
  intVar,
  listVar,
  millisecondsVar,
  portVar,
  processSpec,
  readConfig,
  textVar,
  usdVar,
} from "../../lib/runtime/config.ts";
import type { AccountLimits } from "./accounts/account-service.ts";
import type { FirstAccount } from "./accounts/bootstrap.ts";

/** What the first account is made with; the keys are secrets. */
export const bootstrapSpec = {
  BOOTSTRAP_CREDIT_USD: usdVar({ default: undefined }),
  BOOTSTRAP_INFERENCE_KEY: textVar({ default: undefined }),
  BOOTSTRAP_MANAGEMENT_KEY: textVar({ default: undefined }),
} as const;

/** How long holds and settlements wait, and how long both are remembered. */
export const moneySpec = {
  HOLD_GRACE_MS: millisecondsVar({ default: 300_000 }),
  UNSEEN_GRACE_MS: millisecondsVar({ default: 30_000 }),
  USAGE_RETENTION_DAYS: intVar(2, 36_500)({ default: 400 }),
} as const;

/** The variables of the account service. */
export const accountSpec = {
  ...processSpec,
  ...bootstrapSpec,
  ...kafkaSpec,
  ...addressLimitSpec,
  ...tlsSpec,
  HOST: textVar({ default: "localhost" }),
  PORT: portVar({ default: 8103 }),
  CORS_ORIGINS: listVar({ default: [] }),
  DATABASE_URL: databaseUrlVar(),
  DRAIN_TIMEOUT_MS: millisecondsVar({ default: 15_000 }),
  ...moneySpec,
  ...rateCeilingSpec,
  /** A secret: see readMasterKeys. */
  MASTER_KEYS: textVar(),
  SERVICE_JWKS_FILE: textVar(),
} as const;

/** What the account service is configured with. */
export type AccountConfig = ReturnType<typeof readAccountConfig>;

/** Reads the environment. Throws ConfigError. */
export function readAccountConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(accountSpec, env);
}

/** What the configuration says about waiting and remembering, and about what keys may be given. */
export function accountLimits(
  config: { readonly [N in keyof typeof moneySpec]: number } & RateCeilingConfig,
): AccountLimits {
  return {
    maxRateLimitPerMinute: keyRateCeiling(config),
    holdGraceMs: config.HOLD_GRACE_MS,
    unseenGraceMs: config.UNSEEN_GRACE_MS,
    retentionDays: config.USAGE_RETENTION_DAYS,
  };
}

/** What the first account is made with. Throws ConfigError when a key has not the form of one. */
export function readBootstrapKeys(
  config: {
    readonly [N in keyof typeof bootstrapSpec]: string | undefined;
  },
): FirstAccount {
  const { BOOTSTRAP_INFERENCE_KEY: inferenceKey, BOOTSTRAP_MANAGEMENT_KEY: managementKey } = config;
  const malformed = Object.entries({
    BOOTSTRAP_INFERENCE_KEY: inferenceKey,
    BOOTSTRAP_MANAGEMENT_KEY: managementKey,
  }).find(([, key]) => key !== undefined && !isApiKey(key));
  if (malformed !== undefined) {
    throw new ConfigError(`configuration: ${malformed[0]} must be sk- and 32 to 128 letters, digits, - or _`);
  }
  if (inferenceKey !== undefined && inferenceKey === managementKey) {
    throw new ConfigError("configuration: BOOTSTRAP_INFERENCE_KEY and BOOTSTRAP_MANAGEMENT_KEY must differ");
  }
  const { BOOTSTRAP_CREDIT_USD: credit = "0" } = config;
  return { inferenceKey, managementKey, creditNanoUsd: parseUsd(credit) };
}
