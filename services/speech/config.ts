import {
  type ConfigOf,
  type ConfigSpec,
  millisecondsVar,
  readConfig,
  textVar,
} from "../../lib/runtime/config.ts";
import { generatorSpec } from "../../lib/service/service-spec.ts";
import type { SynthesisLimits } from "./synthesize.ts";

/** Limits of one synthesis and the catalogue; standalone reads them too. */
export const synthesisSpec = {
  SPEECH_FIRST_BYTE_TIMEOUT_MS: millisecondsVar({ default: 20_000 }),
  SPEECH_IDLE_TIMEOUT_MS: millisecondsVar({ default: 15_000 }),
  SPEECH_TIMEOUT_MS: millisecondsVar({ default: 600_000 }),
  CATALOG_DIR: textVar({ default: undefined }),
} as const satisfies ConfigSpec;

/** The environment variables of the speech process, besides each provider's `<PROVIDER>_API_KEY` and `_BASE_URL`. */
export const speechSpec = {
  ...generatorSpec(8101),
  ...synthesisSpec,
} as const satisfies ConfigSpec;

/** Reads the environment, that of its providers included. Throws ConfigError. */
export function readSpeechConfig(environment: NodeJS.ProcessEnv = process.env) {
  return { ...readConfig(speechSpec, environment), environment };
}

/** The time limits that an environment stands for. */
export function synthesisLimits(config: ConfigOf<typeof synthesisSpec>): SynthesisLimits {
  return {
    firstByteTimeoutMs: config.SPEECH_FIRST_BYTE_TIMEOUT_MS,
    idleTimeoutMs: config.SPEECH_IDLE_TIMEOUT_MS,
    timeoutMs: config.SPEECH_TIMEOUT_MS,
  };
}
