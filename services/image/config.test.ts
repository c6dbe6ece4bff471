import { describe, expect, test } from "vitest";
import { ConfigError } from "../../lib/runtime/config.ts";
import { drainTimeoutMs } from "../../lib/service/service-spec.ts";
import { generationSettings, readImageConfig } from "./config.ts";

const required = {
  KAFKA_BROKERS: "kafka:9092",
  SERVICE_KEY_FILE: "keys/image.json",
  SERVICE_JWKS_FILE: "keys/jwks.json",
};
const read = (environment: NodeJS.ProcessEnv = {}) => readImageConfig({ ...required, ...environment });

describe("the environment of the image process", () => {
  test("has defaults for all but the brokers and the key files", () => {
    expect(read()).toMatchObject({
      HOST: "localhost",
      PORT: 8102,
      ACCOUNT_URL: "http://localhost:8103",
      REFERENCE_ALLOWED_CIDRS: [],
      CORS_ORIGINS: [],
    });
    expect(generationSettings(read())).toEqual({
      limits: { timeoutMs: 180_000 },
      maxBodyBytes: 32 << 20,
      maxInflightReferenceBytes: 256 << 20,
    });
    expect(() => readImageConfig({})).toThrow(
      new ConfigError(
        "configuration: KAFKA_BROKERS is required; SERVICE_JWKS_FILE is required; SERVICE_KEY_FILE is required",
      ),
    );
  });

  test("sets each limit, and where references may be", () => {
    const config = read({
      IMAGE_TIMEOUT_MS: "5",
      MAX_BODY_MIB: "1",
      MAX_INFLIGHT_REFERENCE_MIB: "128",
      REFERENCE_ALLOWED_CIDRS: "10.0.0.0/8, fd00::/8",
    });
    expect(generationSettings(config)).toEqual({
      limits: { timeoutMs: 5 },
      maxBodyBytes: 1 << 20,
      maxInflightReferenceBytes: 128 << 20,
    });
    expect(config.REFERENCE_ALLOWED_CIDRS.map(({ prefixLength }) => prefixLength)).toEqual([8, 8]);
  });

  test("goes on to the providers as it is", () => {
    expect(read({ OPENAI_API_KEY: "sk-1" }).environment).toMatchObject({ OPENAI_API_KEY: "sk-1" });
  });

  test.for([
    ["IMAGE_TIMEOUT_MS", "0"],
    ["MAX_BODY_MIB", "0"],
    ["REFERENCE_ALLOWED_CIDRS", "10.0.0.0"],
    ["PORT", "65536"],
    ["DRAIN_TIMEOUT_MS", "-1"],
  ] as const)("refuses %s=%s", ([name, value]) => {
    expect(() => read({ [name]: value })).toThrow(new RegExp(`^configuration: ${name} must be`));
  });
});

test("a drain waits a little longer than the longest request, unless the operator says otherwise", () => {
  expect(drainTimeoutMs(read())).toBe(185_000);
  expect(drainTimeoutMs(read({ DRAIN_TIMEOUT_MS: "0" }))).toBe(0);
});
