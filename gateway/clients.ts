import type { Client, Interceptor, Transport } from "@connectrpc/connect";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { ImageService } from "../gen/media/image/v1/image_service_pb.ts";
import { SpeechService } from "../gen/media/speech/v1/speech_service_pb.ts";
import { imageMessageLimits } from "../lib/generation/image-messages.ts";
import { createKeyAuthenticator, lookUpOverRpc } from "../lib/identity/authenticate.ts";
import type { Audience } from "../lib/identity/issuer.ts";
import type { TokenSigner } from "../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../lib/identity/token-interceptor.ts";
import { createLocalTransport, createRemoteTransport, createRpcClient } from "../lib/runtime/client.ts";
import { defaultMessageLimits, type MessageLimits, type RegisterRoutes } from "../lib/runtime/rpc-handler.ts";
import type { Authenticate } from "./auth.ts";

/** The services that the gateway calls. */
export type GatewayService = Extract<Audience, "account" | "speech" | "image">;

/** Where the services are, such as `http://localhost:8101`. */
export type ServiceUrls = Readonly<Record<GatewayService, string>>;

/** How the services register their RPCs. */
export type ServiceRoutes = Readonly<Record<GatewayService, RegisterRoutes>>;

/** The services as the gateway uses them. */
export interface GatewayClients {
  speech: Client<typeof SpeechService>;
  image: Client<typeof ImageService>;
  authenticate: Authenticate;
}

/** Clients of services in other processes, to which this one names itself by its tokens. */
export function createGatewayClients(
  urls: ServiceUrls,
  signer: TokenSigner,
  { maxBodyBytes }: { maxBodyBytes: number },
): GatewayClients {
  return createClients(signer, (service, interceptors) => {
    const limits = service === "image" ? imageClientLimits(maxBodyBytes) : defaultMessageLimits;
    return createRemoteTransport({ baseUrl: urls[service], interceptors, limits });
  });
}

/** The limits of the image service's port, seen from the other side. */
function imageClientLimits(maxBodyBytes: number): MessageLimits {
  const { readMaxBytes, writeMaxBytes } = imageMessageLimits(maxBodyBytes);
  return { readMaxBytes: writeMaxBytes, writeMaxBytes: readMaxBytes };
}

/** Clients of services in this process; the tokens are the same. */
export function createLocalClients(routes: ServiceRoutes, signer: TokenSigner): GatewayClients {
  return createClients(signer, (service, interceptors) =>
    createLocalTransport(routes[service], { interceptors }),
  );
}

function createClients(
  signer: TokenSigner,
  transportOf: (service: GatewayService, interceptors: Interceptor[]) => Transport,
): GatewayClients {
  const transport = (audience: GatewayService) =>
    transportOf(audience, [createTokenInterceptor({ signer, audience })]);
  const account = createRpcClient(AccountInternalService, transport("account"));
  return {
    speech: createRpcClient(SpeechService, transport("speech")),
    image: createRpcClient(ImageService, transport("image")),
    authenticate: createKeyAuthenticator({ lookUp: lookUpOverRpc(account) }),
  };
}
