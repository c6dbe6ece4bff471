import {
  type ConfigSpec,
  httpUrlVar,
  intVar,
  listVar,
  millisecondsVar,
  portVar,
  processSpec,
  readConfig,
  textVar,
} from "../../lib/runtime/config.ts";
import { tlsSpec } from "../../lib/runtime/tls-files.ts";
import { builtInCatalogDirectory } from "../../providers/catalog-load.ts";
import type { SynthesisLimits } from "./synthesize.ts";

/** What a drain waits for beyond the longest request, milliseconds. */
const drainGraceMs = 5000;

/** Limits of one synthesis and the catalogue; standalone reads them too. */
export const synthesisSpec = {
  SPEECH_FIRST_BYTE_TIMEOUT_MS: millisecondsVar({ default: 20_000 }),
  SPEECH_IDLE_TIMEOUT_MS: millisecondsVar({ default: 15_000 }),
  SPEECH_TIMEOUT_MS: millisecondsVar({ default: 600_000 }),
  CATALOG_DIR: textVar({ default: undefined }),
} as const satisfies ConfigSpec;

/** The environment variables of the speech process, besides each provider's `<PROVIDER>_API_KEY` and `_BASE_URL`. */
export const speechSpec = {
  ...processSpec,
  ...synthesisSpec,
  ...tlsSpec,
  PORT: portVar({ default: 8101 }),
  HOST: textVar({ default: "127.0.0.1" }),
  ACCOUNT_URL: httpUrlVar({ default: "http://localhost:8103" }),
  SERVICE_KEY_FILE: textVar(),
  SERVICE_JWKS_FILE: textVar(),
  CORS_ORIGINS: listVar({ default: [] }),
  DRAIN_TIMEOUT_MS: intVar(0, 86_400_000)({ default: undefined }),
} as const satisfies ConfigSpec;

/** What the speech process is configured with, the environment of its providers included. */
export type SpeechConfig = ReturnType<typeof readSpeechConfig>;

/** Reads the environment. Throws ConfigError. */
export function readSpeechConfig(environment: NodeJS.ProcessEnv = process.env) {
  return { ...readConfig(speechSpec, environment), environment };
}

type SynthesisConfig = Pick<SpeechConfig, keyof typeof synthesisSpec>;

/** The time limits that an environment stands for. */
export function synthesisLimits(config: SynthesisConfig): SynthesisLimits {
  return {
    firstByteTimeoutMs: config.SPEECH_FIRST_BYTE_TIMEOUT_MS,
    idleTimeoutMs: config.SPEECH_IDLE_TIMEOUT_MS,
    timeoutMs: config.SPEECH_TIMEOUT_MS,
  };
}

/** Where catalogue files are, later ones replacing earlier ones of the same name. */
export function catalogDirectories(config: SynthesisConfig): readonly string[] {
  return [builtInCatalogDirectory, ...(config.CATALOG_DIR === undefined ? [] : [config.CATALOG_DIR])];
}

/** How long a stop may take: the operator's choice, else the longest request and a little. */
export function drainTimeoutMs(config: Pick<SpeechConfig, "DRAIN_TIMEOUT_MS" | "SPEECH_TIMEOUT_MS">): number {
  return config.DRAIN_TIMEOUT_MS ?? config.SPEECH_TIMEOUT_MS + drainGraceMs;
}
