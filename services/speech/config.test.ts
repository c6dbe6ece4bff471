import { describe, expect, test } from "vitest";
import { ConfigError } from "../../lib/runtime/config.ts";
import { drainTimeoutMs } from "../../lib/service/service-spec.ts";
import { readSpeechConfig, synthesisLimits } from "./config.ts";

const required = {
  KAFKA_BROKERS: "kafka:9092",
  SERVICE_KEY_FILE: "keys/speech.json",
  SERVICE_JWKS_FILE: "keys/jwks.json",
};
const read = (environment: NodeJS.ProcessEnv = {}) => readSpeechConfig({ ...required, ...environment });

describe("the environment of the speech process", () => {
  test("has defaults for all but the brokers and the key files", () => {
    const environment = { ...required };
    expect(readSpeechConfig(environment)).toMatchObject({
      HOST: "localhost",
      PORT: 8101,
      ACCOUNT_URL: "http://localhost:8103",
      CORS_ORIGINS: [],
      LOG_LEVEL: "info",
      DRAIN_DELAY_MS: 5_000,
    });
    expect(synthesisLimits(read())).toEqual({
      firstByteTimeoutMs: 20_000,
      idleTimeoutMs: 15_000,
      timeoutMs: 600_000,
    });
    expect(() => readSpeechConfig({})).toThrow(
      new ConfigError(
        "configuration: KAFKA_BROKERS is required; SERVICE_JWKS_FILE is required; SERVICE_KEY_FILE is required",
      ),
    );
  });

  test("sets each limit", () => {
    const config = read({
      SPEECH_FIRST_BYTE_TIMEOUT_MS: "1",
      SPEECH_IDLE_TIMEOUT_MS: "2",
      SPEECH_TIMEOUT_MS: "3",
    });
    expect(synthesisLimits(config)).toEqual({ firstByteTimeoutMs: 1, idleTimeoutMs: 2, timeoutMs: 3 });
  });

  test("goes on to the providers as it is", () => {
    expect(read({ OPENAI_API_KEY: "sk-1" }).environment).toMatchObject({ OPENAI_API_KEY: "sk-1" });
  });

  test.for([
    ["SPEECH_FIRST_BYTE_TIMEOUT_MS", "0"],
    ["SPEECH_IDLE_TIMEOUT_MS", "15s"],
    ["SPEECH_TIMEOUT_MS", "86400001"],
    ["PORT", "65536"],
    ["ACCOUNT_URL", "account:8103"],
    ["DRAIN_TIMEOUT_MS", "-1"],
  ] as const)("refuses %s=%s", ([name, value]) => {
    expect(() => read({ [name]: value })).toThrow(new RegExp(`^configuration: ${name} must be`));
  });
});

test("a drain waits a little longer than the longest request, unless the operator says otherwise", () => {
  expect(drainTimeoutMs(read())).toBe(605_000);
  expect(drainTimeoutMs(read({ SPEECH_TIMEOUT_MS: "1000" }))).toBe(6_000);
  expect(drainTimeoutMs(read({ DRAIN_TIMEOUT_MS: "0" }))).toBe(0);
});
