import { generationProcessSpec } from "../../lib/generation/generation-process-spec.ts";
import { type ConfigSpec, millisecondsVar, portVar, readConfig, textVar } from "../../lib/runtime/config.ts";
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
  ...generationProcessSpec,
  ...synthesisSpec,
  PORT: portVar({ default: 8101 }),
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

/** How long a stop may take: the operator's choice, else the longest request and a little. */
export function drainTimeoutMs(config: Pick<SpeechConfig, "DRAIN_TIMEOUT_MS" | "SPEECH_TIMEOUT_MS">): number {
  return config.DRAIN_TIMEOUT_MS ?? config.SPEECH_TIMEOUT_MS + drainGraceMs;
}
