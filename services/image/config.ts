import {
  type ConfigOf,
  type ConfigSpec,
  cidrListVar,
  intVar,
  millisecondsVar,
  readConfig,
  textVar,
} from "../../lib/runtime/config.ts";
import { generatorSpec } from "../../lib/service/service-spec.ts";

const bytesPerMib = 1 << 20;

/** Limits of one generation, what references may name, and the catalogue; standalone reads them too. */
export const generationSpec = {
  IMAGE_TIMEOUT_MS: millisecondsVar({ default: 180_000 }),
  // At least two requests with the most that references may have.
  MAX_INFLIGHT_REFERENCE_MIB: intVar(128, 65_536)({ default: 256 }),
  REFERENCE_ALLOWED_CIDRS: cidrListVar({ default: [] }),
  MAX_BODY_MIB: intVar(1, 1024)({ default: 32 }),
  CATALOG_DIR: textVar({ default: undefined }),
} as const satisfies ConfigSpec;

/** The environment variables of the image process, besides each provider's `<PROVIDER>_API_KEY` and `_BASE_URL`. */
export const imageSpec = {
  ...generatorSpec(8102),
  ...generationSpec,
} as const satisfies ConfigSpec;

/** Reads the environment, that of its providers included. Throws ConfigError. */
export function readImageConfig(environment: NodeJS.ProcessEnv = process.env) {
  return { ...readConfig(imageSpec, environment), environment };
}

/** What an environment says of one generation. */
export function generationSettings(config: ConfigOf<typeof generationSpec>) {
  return {
    limits: { timeoutMs: config.IMAGE_TIMEOUT_MS },
    maxBodyBytes: config.MAX_BODY_MIB * bytesPerMib,
    maxInflightReferenceBytes: config.MAX_INFLIGHT_REFERENCE_MIB * bytesPerMib,
  };
}
