import { addressLimitSpec } from "../lib/rate-limit/address-limiter.ts";
import { loadSpec } from "../lib/rate-limit/load-shedder.ts";
import { rateLimitSpec } from "../lib/rate-limit/open-request-limiter.ts";
import { hostInUrl } from "../lib/rpc/port/open-port.ts";
import { tlsSpec } from "../lib/rpc/port/tls-files.ts";
import {
  type ConfigOf,
  httpUrlVar,
  intVar,
  listVar,
  millisecondsVar,
  portVar,
  processSpec,
  readConfig,
  textVar,
  wordVar,
} from "../lib/runtime/config.ts";
import { callerSpec, drainTimeoutVar } from "../lib/service/service-spec.ts";
import { metricsSpec } from "../lib/telemetry/metrics-listener.ts";

const bytesPerMib = 1 << 20;
/** Longest silence of an event stream, milliseconds: below what proxies and clients take for a dead connection. */
const keepAliveMs = 10_000;

/** The variables of the public listener and of the requests that it takes; standalone reads them too. */
export const listenerSpec = {
  ...tlsSpec,
  ...metricsSpec,
  PORT: portVar({ default: 8080 }),
  HOST: textVar({ default: "localhost" }),
  PUBLIC_URL: httpUrlVar({ default: undefined }),
  CREDITS_URL: httpUrlVar({ default: undefined }),
  CORS_ORIGINS: listVar({ default: [] }),
  CONSOLE: wordVar(["on", "off"])({ default: "on" }),
  MAX_BODY_MIB: intVar(1, 1024)({ default: 32 }),
  MAX_INFLIGHT_BODY_MIB: intVar(1, 65_536)({ default: 256 }),
  BODY_TIMEOUT_MS: millisecondsVar({ default: 30_000 }),
  CLIENT_STALL_TIMEOUT_MS: millisecondsVar({ default: 60_000 }),
  SPEECH_TIMEOUT_MS: millisecondsVar({ default: 600_000 }),
  IMAGE_TIMEOUT_MS: millisecondsVar({ default: 180_000 }),
} as const;

/** The variables of the gateway as a process of its own. */
export const gatewaySpec = {
  ...processSpec,
  ...listenerSpec,
  ...rateLimitSpec,
  ...loadSpec,
  ...addressLimitSpec,
  ...callerSpec,
  DRAIN_TIMEOUT_MS: drainTimeoutVar,
  SPEECH_URL: httpUrlVar({ default: "http://localhost:8101" }),
  IMAGE_URL: httpUrlVar({ default: "http://localhost:8102" }),
  USAGE_URL: httpUrlVar({ default: "http://localhost:8104" }),
  DESTINATION_URL: httpUrlVar({ default: "http://localhost:8105" }),
} as const;

/** Reads the gateway's environment. Throws ConfigError with one line that names each bad variable. */
export function readGatewayConfig(env?: NodeJS.ProcessEnv) {
  return readConfig(gatewaySpec, env);
}

/** What the gateway does with a request, beyond what each route knows. */
export interface GatewaySettings {
  /** Where people find out how to get credits; stands in the message of 402. */
  creditsUrl: string;
  /** Origins whose pages may call; none when empty. */
  corsOrigins: readonly string[];
  /** Whether the console, a web page, is served. */
  hasConsole: boolean;
  /** Longest request body, bytes. */
  maxBodyBytes: number;
  /** Most that the bodies of all requests may hold at one time, bytes. */
  maxInflightBodyBytes: number;
  /** How long the headers and then the body of a request may take to arrive. */
  bodyTimeoutMs: number;
  /** How long a client may take nothing of an answer before it is cut. */
  clientStallTimeoutMs: number;
  /** How long a speech request may take in all. */
  speechTimeoutMs: number;
  /** How long an image request may take in all. */
  imageTimeoutMs: number;
  /** How long an event stream may be silent: until its headers, and between comments. */
  keepAliveMs: number;
}

type ListenerConfig = ConfigOf<typeof listenerSpec>;

/** The settings that an environment stands for. */
export function gatewaySettings(config: ListenerConfig): GatewaySettings {
  return {
    creditsUrl: config.CREDITS_URL ?? `${publicUrl(config)}/credits`,
    corsOrigins: config.CORS_ORIGINS,
    hasConsole: config.CONSOLE === "on",
    maxBodyBytes: config.MAX_BODY_MIB * bytesPerMib,
    // Half of the least is for all bodies but the one that the other half makes sure of (byte-budget.ts).
    maxInflightBodyBytes: Math.max(config.MAX_INFLIGHT_BODY_MIB, 2 * config.MAX_BODY_MIB) * bytesPerMib,
    bodyTimeoutMs: config.BODY_TIMEOUT_MS,
    clientStallTimeoutMs: config.CLIENT_STALL_TIMEOUT_MS,
    speechTimeoutMs: config.SPEECH_TIMEOUT_MS,
    imageTimeoutMs: config.IMAGE_TIMEOUT_MS,
    keepAliveMs,
  };
}

/** What HOST may be where `localhost` leads to the listener. */
const localHosts: readonly string[] = ["localhost", "0.0.0.0", "::"];

/** How clients reach the gateway, without a slash at its end. */
export function publicUrl(config: ListenerConfig): string {
  const scheme = config.TLS_CERT_FILE === undefined ? "http" : "https";
  const host = localHosts.includes(config.HOST) ? "localhost" : hostInUrl(config.HOST);
  return config.PUBLIC_URL ?? `${scheme}://${host}:${config.PORT}`;
}
