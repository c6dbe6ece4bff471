import { expect, test } from "vitest";
import { ConfigError, readConfig } from "../runtime/config.ts";
import { metricsSpec } from "./metrics-spec.ts";

const portOf = (text: string | undefined) => readConfig(metricsSpec, { METRICS_PORT: text }).METRICS_PORT;

test("the port of metrics is 9464 unless another one is given, or none", () => {
  expect(portOf(undefined)).toBe(9464);
  expect(portOf("")).toBe(9464);
  expect(portOf("0")).toBe(0);
  expect(portOf("19464")).toBe(19464);
  expect(portOf("off")).toBe("off");
});

test.for(["65536", "-1", "none", "9464.5", "false", "0x10"])("%s is no port", (text) => {
  expect(() => portOf(text)).toThrow(ConfigError);
  expect(() => portOf(text)).toThrow("METRICS_PORT must be off or a whole number from 0 to 65535");
});
