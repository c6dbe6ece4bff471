import type { KeyFiles } from "../lib/identity/key-files.ts";

/** The services of a stack, each of which others reach at one address. */
export const stackServices = ["account", "usage", "destination", "speech", "image", "gateway"] as const;

/** One of them. */
export type StackService = (typeof stackServices)[number];

/** They start in this order, those of one list at once, and stop in the opposite one. */
export const stackTiers: readonly (readonly StackService[])[] = [
  ["account"],
  ["usage", "destination", "speech", "image"],
  ["gateway"],
];

/** The ports of the services unless others are asked for. */
export const defaultPorts: Readonly<Record<StackService, number>> = {
  account: 8103,
  usage: 8104,
  destination: 8105,
  speech: 8101,
  image: 8102,
  gateway: 8080,
};

/** The script of a service's process. */
export function scriptOf(service: StackService): string {
  return service === "gateway" ? "gateway/main.ts" : `services/${service}/main.ts`;
}

/** What the processes of a stack stand on. Master keys and database URL are secrets. */
export interface StackGround {
  readonly databaseUrl: string;
  readonly masterKeys: string;
  readonly keyFiles: KeyFiles;
  readonly urls: Readonly<Record<StackService, string>>;
}

/** The environment of one service's processes, beyond what all share; the port is the system's choice. */
export function environmentOf(service: StackService, ground: StackGround): Record<string, string> {
  const { databaseUrl, masterKeys, keyFiles, urls } = ground;
  const common = { HOST: "127.0.0.1", PORT: "0", SERVICE_JWKS_FILE: keyFiles.jwksFile };
  const database = { DATABASE_URL: databaseUrl };
  const sealing = { MASTER_KEYS: masterKeys };
  if (service === "account") return { ...common, ...database, ...sealing };
  const calling = { ACCOUNT_URL: urls.account, SERVICE_KEY_FILE: keyFiles.keyFile(service) };
  switch (service) {
    case "usage":
      return { ...common, ...calling, ...database };
    case "destination":
      return { ...common, ...calling, ...database, ...sealing };
    case "speech":
    case "image":
      return { ...common, ...calling };
    case "gateway":
      return { ...common, ...calling, ...gatewayEnvironment(urls) };
  }
}

function gatewayEnvironment(urls: StackGround["urls"]): Record<string, string> {
  return {
    USAGE_URL: urls.usage,
    DESTINATION_URL: urls.destination,
    SPEECH_URL: urls.speech,
    IMAGE_URL: urls.image,
    PUBLIC_URL: urls.gateway,
    METRICS_PORT: "0",
  };
}
