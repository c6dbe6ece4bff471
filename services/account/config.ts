import { isApiKey } from "../../lib/identity/api-key.ts";
import { parseUsd } from "../../lib/money/nano-usd.ts";
import { keyRateCeiling, rateCeilingSpec } from "../../lib/rate-limit/open-request-limiter.ts";
import {
  ConfigError,
  type ConfigOf,
  type ConfigSpec,
  millisecondsVar,
  readConfig,
  textVar,
  usdVar,
} from "../../lib/runtime/config.ts";
import { databaseSpec, retentionSpec, sealingSpec, serviceSpec } from "../../lib/service/service-spec.ts";
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
  ...retentionSpec,
} as const;

/** What the first account is made with, as an environment says it. */
export type BootstrapConfig = { readonly [N in keyof typeof bootstrapSpec]: string | undefined };

/** What `accountLimits` reads. */
export type MoneyConfig = ConfigOf<typeof moneySpec & typeof rateCeilingSpec>;

/** The variables of the account service. */
export const accountSpec = {
  ...serviceSpec(8103),
  CATALOG_DIR: textVar({ default: undefined }),
  ...databaseSpec,
  ...sealingSpec,
  ...bootstrapSpec,
  ...moneySpec,
  ...rateCeilingSpec,
} as const satisfies ConfigSpec;

/** Reads the environment. Throws ConfigError. */
export function readAccountConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(accountSpec, env);
}

/** What the configuration says about waiting and remembering, and about what keys may be given. */
export function accountLimits(config: MoneyConfig): AccountLimits {
  return {
    maxRateLimitPerMinute: keyRateCeiling(config),
    holdGraceMs: config.HOLD_GRACE_MS,
    unseenGraceMs: config.UNSEEN_GRACE_MS,
    retentionDays: config.USAGE_RETENTION_DAYS,
  };
}

/** What the first account is made with. Throws ConfigError when a key has not the form of one. */
export function readBootstrapKeys(config: BootstrapConfig): FirstAccount {
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
