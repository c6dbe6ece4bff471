import { isIP } from "node:net";
import { type CleanedEnv, cleanEnv, EnvError, makeValidator, type ValidatorSpec } from "envalid";

/** A configuration that can't be used. Its message is one line that names every bad variable. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Environment variables by name, each with its validator: `intVar`, `urlVar`, `textVar` … */
export type ConfigSpec = Readonly<Record<string, ValidatorSpec<unknown>>>;

/** What the variables of a spec are read as. */
export type ConfigOf<S extends ConfigSpec> = Pick<CleanedEnv<S>, keyof S & keyof CleanedEnv<S>>;

/**
 * Reads and checks the variables of `spec`. A variable set to the empty string counts as unset.
 * Throws ConfigError with one line that names each variable that is missing or malformed, and why.
 */
export function readConfig<S extends ConfigSpec>(spec: S, env: NodeJS.ProcessEnv = process.env): ConfigOf<S> {
  const present = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ""),
  );
  const read = cleanEnv(present, spec, {
    reporter: ({ errors }) => {
      const lines = Object.entries(errors).map(([name, error]) => describe(name, error));
      if (lines.length > 0) throw new ConfigError(`configuration: ${lines.join("; ")}`);
    },
  });
  return { ...read };
}

function describe(name: string, error: unknown): string {
  if (error instanceof EnvError && error.message !== "") return `${name} ${error.message}`;
  return `${name} is required`;
}

/** A whole number from `min` to `max`, both included. */
export function intVar(min: number, max: number) {
  return makeValidator<number>((text) => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || value < min || value > max) {
      throw new EnvError(`must be a whole number from ${min} to ${max}`);
    }
    return value;
  });
}

/** A TCP port; 0 lets the system choose one. */
export const portVar = intVar(0, 65535);

/** A TCP port, 0 included, or the word `off`. */
export const portOrOffVar = makeValidator<number | "off">((text) => {
  if (text === "off") return text;
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535) {
    throw new EnvError("must be off or a whole number from 0 to 65535");
  }
  return Number(text);
});

/** A duration in milliseconds, at least 1 and at most a day. */
export const millisecondsVar = intVar(1, 86_400_000);

/** Any text that is not empty. */
export const textVar = makeValidator<string>((text) => text);

/** An absolute http or https URL; a slash at its end is dropped. */
export const httpUrlVar = makeValidator<string>((text) => {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw new EnvError("must be an http(s) URL");
  return text.replace(/\/+$/, "");
});

/** A PostgreSQL connection URL. The value is a secret and stands in no message. */
export const databaseUrlVar = makeValidator<string>((text) => {
  if (!["postgres:", "postgresql:"].includes(URL.parse(text)?.protocol ?? "")) {
    throw new EnvError("must be a postgres:// URL");
  }
  return text;
});

/** A Redis connection URL, its path empty or the number of a database. The value is a secret and stands in no message. */
export const redisUrlVar = makeValidator<string>((text) => {
  const url = URL.parse(text);
  if (url === null || !["redis:", "rediss:"].includes(url.protocol) || !/^(\/\d*)?$/.test(url.pathname)) {
    throw new EnvError("must be a redis:// or rediss:// URL");
  }
  return text;
});

/** A share from 0 to 1, such as `0.05`. */
const shareVar = makeValidator<number>((text) => {
  const share = Number(text);
  if (!/^\d*\.?\d+$/.test(text) || share > 1) throw new EnvError("must be a number from 0 to 1");
  return share;
});

/** One of the listed words. */
export function wordVar<const W extends string>(words: readonly W[]) {
  return makeValidator<W>((text) => {
    const word = words.find((candidate) => candidate === text);
    if (word === undefined) throw new EnvError(`must be one of ${words.join(", ")}`);
    return word;
  });
}

/** A list of texts separated by commas; blanks around them are dropped. */
export const listVar = makeValidator<readonly string[]>((text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== ""),
);

/** `true` or `false`. */
export const booleanVar = makeValidator<boolean>((text) => {
  if (text !== "true" && text !== "false") throw new EnvError("must be true or false");
  return text === "true";
});

/** A list of `host:port` separated by commas, at least one; no IPv6 literals. */
export const hostPortListVar = makeValidator<readonly string[]>((text) => {
  const parts = text.split(",").map((part) => part.trim());
  const isPort = (port = "") => /^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65535;
  if (!parts.every((part) => /^[\w.-]+:\d+$/.test(part) && isPort(part.split(":")[1]))) {
    throw new EnvError("must be host:port, several separated by commas");
  }
  return parts;
});

/** A block of addresses, such as 10.0.0.0/8: all that share the first `prefixLength` bits of `address`. */
export interface Cidr {
  readonly address: string;
  readonly prefixLength: number;
  readonly family: "ipv4" | "ipv6";
}

/** A list of CIDR blocks separated by commas. */
export const cidrListVar = makeValidator<readonly Cidr[]>((text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(parseCidr),
);

function parseCidr(text: string): Cidr {
  const [, address = "", length = ""] = /^([0-9a-f.:]+)\/(\d{1,3})$/i.exec(text) ?? [];
  const version = isIP(address);
  const prefixLength = Number(length);
  if (version === 0 || prefixLength > (version === 4 ? 32 : 128)) {
    throw new EnvError("must be CIDR blocks such as 10.0.0.0/8, separated by commas");
  }
  return { address, prefixLength, family: version === 4 ? "ipv4" : "ipv6" };
}

/** Amount of US dollars, such as `10` or `2.50`, as text; lib/money turns it into nano-USD. */
export const usdVar = makeValidator<string>((text) => {
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text))
    throw new EnvError("must be an amount of US dollars such as 10 or 2.50");
  return text;
});

/** The variables that every process reads. */
export const processSpec = {
  LOG_LEVEL: wordVar(["trace", "debug", "info", "warn", "error", "fatal"])({ default: "info" }),
  DRAIN_DELAY_MS: intVar(0, 600_000)({ default: 5000 }),
  /** Where traces are sent to, without its `/v1/traces`; no traces unless set. */
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrlVar({ default: undefined }),
  /** Sent with them: `name=value` pairs separated by commas. A secret. */
  OTEL_EXPORTER_OTLP_HEADERS: textVar({ default: undefined }),
  /** The share of requests that are traced. */
  OTEL_TRACES_SAMPLER_ARG: shareVar({ default: 1 }),
  OTEL_SERVICE_NAME: textVar({ default: undefined }),
} as const;
