import { describe, expect, test } from "vitest";
import {
  ConfigError,
  cidrListVar,
  databaseUrlVar,
  httpUrlVar,
  intVar,
  listVar,
  millisecondsVar,
  portVar,
  processSpec,
  readConfig,
  textVar,
  usdVar,
  wordVar,
} from "./config.ts";

const failure = (run: () => unknown): string => {
  try {
    run();
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(ConfigError);
    return (thrown as ConfigError).message;
  }
  throw new Error("nothing was thrown");
};

describe("reading the configuration", () => {
  test("gives typed values and defaults", () => {
    const spec = {
      PORT: portVar({ default: 8080 }),
      NAME: textVar(),
      LIST: listVar({ default: [] }),
      OFF: textVar({ default: undefined }),
    };
    expect({ ...readConfig(spec, { PORT: "81", NAME: "x", OTHER: "y" }) }).toMatchObject({
      PORT: 81,
      NAME: "x",
      LIST: [],
    });
    expect(readConfig(spec, { NAME: "x" }).OFF).toBeUndefined();
  });

  test("takes an empty variable for an unset one", () => {
    expect(readConfig({ PORT: portVar({ default: 8080 }) }, { PORT: "" }).PORT).toBe(8080);
    expect(failure(() => readConfig({ NAME: textVar() }, { NAME: "" }))).toBe(
      "configuration: NAME is required",
    );
  });

  test("names every bad variable in one line, and no secret value", () => {
    const spec = { PORT: portVar(), DATABASE_URL: databaseUrlVar(), NAME: textVar() };
    const message = failure(() =>
      readConfig(spec, { PORT: "70000", DATABASE_URL: "mysql://me:hunter2@db/x" }),
    );
    expect(message).toMatch(/^configuration: .*PORT must be a whole number from 0 to 65535/);
    expect(message).toContain("DATABASE_URL must be a postgres:// URL");
    expect(message).toContain("NAME is required");
    expect(message).not.toMatch(/hunter2|\n/);
  });

  test("has the process's own variables", () => {
    expect({ ...readConfig(processSpec, {}) }).toMatchObject({ LOG_LEVEL: "info", DRAIN_DELAY_MS: 5000 });
    expect(readConfig(processSpec, { DRAIN_DELAY_MS: "0" }).DRAIN_DELAY_MS).toBe(0);
  });
});

describe("a variable", () => {
  const validators = {
    port: portVar(),
    int: intVar(-5, 5)(),
    milliseconds: millisecondsVar(),
    url: httpUrlVar(),
    database: databaseUrlVar(),
    word: wordVar(["one", "two"])(),
    list: listVar(),
    cidrs: cidrListVar(),
    usd: usdVar(),
  };
  const read = (kind: keyof typeof validators, text: string) =>
    readConfig({ X: validators[kind] }, { X: text }).X;

  test.for([
    ["port", "65535", 65535],
    ["int", "-5", -5],
    ["milliseconds", "86400000", 86_400_000],
    ["url", "https://host:1/path//", "https://host:1/path"],
    ["database", "postgresql://u:p@host/db", "postgresql://u:p@host/db"],
    ["word", "two", "two"],
    ["list", " a, b ,,c", ["a", "b", "c"]],
    ["cidrs", "10.0.0.0/8, ", [{ address: "10.0.0.0", prefixLength: 8, family: "ipv4" }]],
    [
      "cidrs",
      "fd12::/16,192.168.1.7/32",
      [
        { address: "fd12::", prefixLength: 16, family: "ipv6" },
        { address: "192.168.1.7", prefixLength: 32, family: "ipv4" },
      ],
    ],
    ["usd", "2.50", "2.50"],
  ] as const)("%s takes %s", ([kind, text, value]) => {
    expect(read(kind, text)).toEqual(value);
  });

  test.for([
    ["port", "-1"],
    ["port", "1e3"],
    ["port", "80.5"],
    ["int", "6"],
    ["milliseconds", "0"],
    ["url", "ftp://host"],
    ["url", "host:80"],
    ["database", "host/db"],
    ["word", "three"],
    ["cidrs", "10.0.0.0"],
    ["cidrs", "10.0.0.0/33"],
    ["cidrs", "fd00::/129"],
    ["cidrs", "10.0.0/8"],
    ["cidrs", "0x0a.0.0.0/8"],
    ["cidrs", "fe80::%eth0/64"],
    ["cidrs", "host/8"],
    ["cidrs", "10.0.0.0/8 172.16.0.0/12"],
    ["cidrs", "10.0.0.0/-1"],
    ["usd", "-1"],
    ["usd", "1,50"],
    ["usd", "10 USD"],
  ] as const)("%s refuses %s", ([kind, text]) => {
    expect(failure(() => read(kind, text))).toMatch(/^configuration: X must be /);
  });
});
