import { type ConfigSpec, cidrListVar, readConfig } from "../../lib/runtime/config.ts";
import {
  callerSpec,
  databaseSpec,
  retentionSpec,
  sealingSpec,
  serviceSpec,
} from "../../lib/service/service-spec.ts";

/** Where destinations may lead; standalone reads it too. */
export const receiverSpec = {
  DESTINATION_ALLOWED_CIDRS: cidrListVar({ default: [] }),
} as const satisfies ConfigSpec;

/** The variables of the destination service. */
export const destinationSpec = {
  ...serviceSpec(8105),
  ...callerSpec,
  ...databaseSpec,
  ...sealingSpec,
  ...retentionSpec,
  ...receiverSpec,
} as const satisfies ConfigSpec;

/** Reads the environment. Throws ConfigError. */
export function readDestinationConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(destinationSpec, env);
}
