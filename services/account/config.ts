import { isApiKey } from "../../lib/identity/api-key.ts";
import {
  ConfigError,
  databaseUrlVar,
  listVar,
  millisecondsVar,
  portVar,
  processSpec,
  readConfig,
  textVar,
} from "../../lib/runtime/config.ts";
import { tlsSpec } from "../../lib/runtime/tls-files.ts";
import type { BootstrapKeys } from "./bootstrap.ts";

/** Keys that the first account is made with; the values are secrets. */
export const bootstrapSpec = {
  BOOTSTRAP_INFERENCE_KEY: textVar({ default: undefined }),
  BOOTSTRAP_MANAGEMENT_KEY: textVar({ default: undefined }),
} as const;

/** The variables of the account service. */
export const accountSpec = {
  ...processSpec,
  ...bootstrapSpec,
  ...tlsSpec,
  HOST: textVar({ default: "127.0.0.1" }),
  PORT: portVar({ default: 8103 }),
  CORS_ORIGINS: listVar({ default: [] }),
  DATABASE_URL: databaseUrlVar(),
  DRAIN_TIMEOUT_MS: millisecondsVar({ default: 15_000 }),
  SERVICE_JWKS_FILE: textVar(),
} as const;

/** What the account service is configured with. */
export type AccountConfig = ReturnType<typeof readAccountConfig>;

/** Reads the environment. Throws ConfigError. */
export function readAccountConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(accountSpec, env);
}

/** The keys that the first account is made with. Throws ConfigError when one has not the form of a key. */
export function readBootstrapKeys(
  config: {
    readonly [N in keyof typeof bootstrapSpec]: string | undefined;
  },
): BootstrapKeys {
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
  return { inferenceKey, managementKey };
}
