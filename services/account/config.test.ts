import { expect, test } from "vitest";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { accountLimits, readAccountConfig, readBootstrapKeys } from "./config.ts";

const required = {
  DATABASE_URL: "postgres://a",
  KAFKA_BROKERS: "a:9092",
  SERVICE_JWKS_FILE: "keys",
  MASTER_KEYS: "k:x",
};
const read = (env: NodeJS.ProcessEnv) => readBootstrapKeys(readAccountConfig({ ...required, ...env }));

test("the first account is made with what is configured, and with no credit unless it says so", () => {
  const inferenceKey = generateApiKey();
  expect(read({ BOOTSTRAP_INFERENCE_KEY: inferenceKey, BOOTSTRAP_CREDIT_USD: "2.50" })).toEqual({
    inferenceKey,
    managementKey: undefined,
    creditNanoUsd: 2_500_000_000n,
  });
  expect(read({})).toEqual({ inferenceKey: undefined, managementKey: undefined, creditNanoUsd: 0n });
});

test.for(["-1", "ten", "1.0000000001", "1e3", "$5"])("a credit of %s is refused in one line", (credit) => {
  expect(() => read({ BOOTSTRAP_CREDIT_USD: credit })).toThrow(
    /^configuration: BOOTSTRAP_CREDIT_USD must be an amount of US dollars .+$/,
  );
});

test("a key may be given what the operator says, else ten times what each has", () => {
  const most = (env: NodeJS.ProcessEnv) =>
    accountLimits(readAccountConfig({ ...required, ...env })).maxRateLimitPerMinute;
  expect(most({})).toBe(6000);
  expect(most({ RATE_LIMIT_PER_MINUTE: "50" })).toBe(500);
  expect(most({ RATE_LIMIT_PER_MINUTE: "50", MAX_RATE_LIMIT_PER_MINUTE: "70" })).toBe(70);
});

test("there are no provider keys without master keys", () => {
  const { MASTER_KEYS: _, ...others } = required;
  expect(() => readAccountConfig(others)).toThrow(/^configuration: MASTER_KEYS is required$/);
});

test("the two first keys differ", () => {
  const key = generateApiKey();
  expect(() => read({ BOOTSTRAP_INFERENCE_KEY: key, BOOTSTRAP_MANAGEMENT_KEY: key })).toThrow("must differ");
});
