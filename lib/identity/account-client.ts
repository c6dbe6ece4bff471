import type { Client } from "@connectrpc/connect";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { createRemoteTransport, createRpcClient } from "../rpc/client.ts";
import type { Issuer } from "./issuer.ts";
import { readServiceKey } from "./service-key.ts";
import { createTokenSigner } from "./service-token.ts";
import { createTokenInterceptor } from "./token-interceptor.ts";

/** What account answers to processes. */
export type AccountClient = Client<typeof AccountInternalService>;

/** A process's client for what account answers to processes. Throws StartError for a key that can't be used. */
export async function connectAccount(
  config: { readonly ACCOUNT_URL: string; readonly SERVICE_KEY_FILE: string },
  issuer: Issuer,
): Promise<AccountClient> {
  const signer = createTokenSigner(await readServiceKey(config.SERVICE_KEY_FILE, issuer));
  const interceptors = [createTokenInterceptor({ signer, audience: "account" })];
  return createRpcClient(
    AccountInternalService,
    createRemoteTransport({ baseUrl: config.ACCOUNT_URL, interceptors }),
  );
}
