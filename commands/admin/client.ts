import { userInfo } from "node:os";
import { join } from "node:path";
import type { Client, Interceptor } from "@connectrpc/connect";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { Audience } from "../../lib/identity/issuer.ts";
import { readServiceKey } from "../../lib/identity/service-key.ts";
import { createTokenSigner, isOperatorName } from "../../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../../lib/identity/token-interceptor.ts";
import { createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { httpUrlVar, portVar, readConfig, textVar } from "../../lib/runtime/config.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { StartError } from "../../lib/runtime/start-error.ts";

/** The variables of the operator's commands. */
export const adminSpec = {
  ACCOUNT_URL: httpUrlVar({ default: undefined }),
  ADMIN_KEY_FILE: textVar({ default: undefined }),
  DATA_DIR: textVar({ default: ".data" }),
  RPC_PORT: portVar({ default: 8081 }),
} as const;

/** A client for operators, and where it calls. */
export interface AdminClient {
  readonly url: string;
  readonly rpc: Client<typeof AccountAdminService>;
}

/**
 * A client with an admin token of the operator's key. Without ACCOUNT_URL and ADMIN_KEY_FILE it speaks to standalone on
 * this machine. Throws ConfigError or StartError.
 */
export async function connectAdmin(
  operator: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): Promise<AdminClient> {
  const config = readConfig(adminSpec, env);
  const url = config.ACCOUNT_URL ?? `http://localhost:${config.RPC_PORT}`;
  const token = await operatorToken("account", operator, config);
  const transport = createRemoteTransport({ baseUrl: url, interceptors: [token] });
  return { url, rpc: createRpcClient(AccountAdminService, transport) };
}

/**
 * Sends tokens of the operator's key with calls to a service. They name the login unless `operator` is given. Throws
 * StartError.
 */
export async function operatorToken(
  audience: Audience,
  operator: string | undefined,
  config: { readonly ADMIN_KEY_FILE: string | undefined; readonly DATA_DIR: string },
): Promise<Interceptor> {
  const keyFile = config.ADMIN_KEY_FILE ?? join(config.DATA_DIR, "keys", "admin.jwk");
  const subject = operator ?? systemUser();
  if (!isOperatorName(subject)) throw new StartError("--operator must be 1 to 128 printable characters");
  const key = await readServiceKey(keyFile, "operator").catch((thrown: unknown) => {
    if (!(thrown instanceof StartError)) throw thrown;
    throw new StartError(`${thrown.message}; set ADMIN_KEY_FILE to the operator's key`);
  });
  return createTokenInterceptor({ signer: createTokenSigner(key, subject), audience });
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return "operator";
  }
}

/** Rethrows what a call of a service has thrown: what that refused as StartError, in the operator's words. */
export function refused(service: string): (thrown: unknown) => never {
  return (thrown) => {
    throw thrown instanceof DomainError ? new StartError(describeRefusal(thrown, service)) : thrown;
  };
}

function describeRefusal({ reason, message, issues }: DomainError, service: string): string {
  switch (reason) {
    case ErrorReason.SERVICE_UNAVAILABLE:
    case ErrorReason.TIMED_OUT:
      return `the ${service} does not answer`;
    case ErrorReason.KEY_UNKNOWN:
    case ErrorReason.KEY_EXPIRED:
      return `the ${service} does not accept this admin key (or the clocks differ): ${message}`;
    default:
      return issues.length === 0
        ? message
        : issues.map((issue) => `${issue.path} ${issue.message}`).join("; ");
  }
}
