/**
 * The table of the processes that a gateway is made of when they are not one. What a process needs is what its
 * configuration names: DATABASE_URL, KAFKA_BROKERS, REDIS_URL, keys, and the URLs of the processes that it calls.
 */
import { gatewaySpec } from "../../gateway/config.ts";
import type { KeyFiles } from "../../lib/identity/key-files.ts";
import type { ConfigSpec } from "../../lib/runtime/config.ts";
import { accountSpec } from "../../services/account/config.ts";
import { destinationSpec } from "../../services/destination/config.ts";
import { imageSpec } from "../../services/image/config.ts";
import { speechSpec } from "../../services/speech/config.ts";
import { usageSpec } from "../../services/usage/config.ts";

/** What each process reads, those first that others need. */
export const processSpecs = {
  account: accountSpec,
  usage: usageSpec,
  destination: destinationSpec,
  speech: speechSpec,
  image: imageSpec,
  gateway: gatewaySpec,
} as const satisfies Readonly<Record<string, ConfigSpec>>;

/** One of the processes. */
export type ProcessName = keyof typeof processSpecs;

/** All of them. */
export const processNames = Object.keys(processSpecs) as readonly ProcessName[];

/** They start in this order, those of one list at once, and stop in the opposite one. */
export const processTiers: readonly (readonly ProcessName[])[] = [
  ["account"],
  ["usage", "destination", "speech", "image"],
  ["gateway"],
];

/** The ports of the processes unless others are asked for. */
export const defaultPorts = Object.fromEntries(
  processNames.map((name) => [name, Number(processSpecs[name].PORT.default)]),
) as Readonly<Record<ProcessName, number>>;

/** The script of a process. */
export function scriptOf(name: ProcessName): string {
  return name === "gateway" ? "gateway/main.ts" : `services/${name}/main.ts`;
}

/** The `what` of the log line that names a process's port. */
export function listensFor(name: ProcessName): "rest" | "rpc" {
  return name === "gateway" ? "rest" : "rpc";
}

/** What processes stand on. Master keys and database URL are secrets. */
export interface ProcessGround {
  readonly databaseUrl: string;
  readonly masterKeys: string;
  readonly keyFiles: KeyFiles;
  /** Of the processes that are called, and the gateway's where it is known. */
  readonly urls: Readonly<Partial<Record<ProcessName, string>>>;
}

/** The environment of a process: what it reads of what `ground` says; the port is the system's choice. */
export function environmentOf(name: ProcessName, ground: ProcessGround): Record<string, string> {
  const { databaseUrl, masterKeys, keyFiles, urls } = ground;
  const known: Readonly<Record<string, string | undefined>> = {
    HOST: "127.0.0.1",
    PORT: "0",
    METRICS_PORT: "0",
    DATABASE_URL: databaseUrl,
    MASTER_KEYS: masterKeys,
    SERVICE_JWKS_FILE: keyFiles.jwksFile,
    SERVICE_KEY_FILE: keyFiles.keyFile(name),
    PUBLIC_URL: urls.gateway,
    ...Object.fromEntries(processNames.map((other) => [`${other.toUpperCase()}_URL`, urls[other]])),
  };
  const spec: ConfigSpec = processSpecs[name];
  return Object.fromEntries(
    Object.entries(known).flatMap(([variable, value]) =>
      value !== undefined && variable in spec ? [[variable, value]] : [],
    ),
  );
}
