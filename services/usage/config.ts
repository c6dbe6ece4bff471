import { type ConfigSpec, readConfig } from "../../lib/runtime/config.ts";
import { callerSpec, databaseSpec, retentionSpec, serviceSpec } from "../../lib/service/service-spec.ts";

/** The variables of the usage service. */
export const usageSpec = {
  ...serviceSpec(8104),
  ...callerSpec,
  ...databaseSpec,
  ...retentionSpec,
} as const satisfies ConfigSpec;

/** Reads the environment. Throws ConfigError. */
export function readUsageConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(usageSpec, env);
}
