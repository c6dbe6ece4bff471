import type { Interceptor } from "@connectrpc/connect";
import { actingForKey } from "./caller.ts";
import type { Audience } from "./issuer.ts";
import type { TokenSigner } from "./service-token.ts";

interface TokenInterceptorOptions {
  signer: TokenSigner;
  audience: Audience;
}

/** Client side: sends this process's service token, on behalf of whom the call's `actingForKey` names. */
export function createTokenInterceptor({ signer, audience }: TokenInterceptorOptions): Interceptor {
  return (next) => async (request) => {
    const token = await signer.sign(audience, request.contextValues.get(actingForKey));
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
