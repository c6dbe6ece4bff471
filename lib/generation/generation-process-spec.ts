import { kafkaSpec } from "../events/kafka/kafka-config.ts";
import { addressLimitSpec } from "../rate-limit/address-limiter.ts";
import { loadSpec } from "../rate-limit/open-load-shedder.ts";
import { rateLimitSpec } from "../rate-limit/open-request-limiter.ts";
import { tlsSpec } from "../rpc/port/tls-files.ts";
import { httpUrlVar, intVar, listVar, processSpec, textVar } from "../runtime/config.ts";
import { paidSpec } from "./paid-spec.ts";

/** The variables that every process reads that generates. */
export const generationProcessSpec = {
  ...processSpec,
  ...tlsSpec,
  ...kafkaSpec,
  ...paidSpec,
  ...rateLimitSpec,
  ...loadSpec,
  ...addressLimitSpec,
  HOST: textVar({ default: "localhost" }),
  ACCOUNT_URL: httpUrlVar({ default: "http://localhost:8103" }),
  SERVICE_KEY_FILE: textVar(),
  SERVICE_JWKS_FILE: textVar(),
  CORS_ORIGINS: listVar({ default: [] }),
  DRAIN_TIMEOUT_MS: intVar(0, 86_400_000)({ default: undefined }),
} as const;
