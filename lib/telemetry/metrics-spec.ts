import { type ConfigSpec, portOrOffVar } from "../runtime/config.ts";

/** Where a process serves its metrics whose other ports are not for operators; `off`: nowhere. */
export const metricsSpec = {
  METRICS_PORT: portOrOffVar({ default: 9464 }),
} as const satisfies ConfigSpec;
