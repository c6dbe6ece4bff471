import type { DescField } from "@bufbuild/protobuf";
import type { Client, Interceptor, Transport } from "@connectrpc/connect";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../gen/media/account/v1/credit_service_pb.ts";
import { KeyService } from "../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../gen/media/account/v1/provider_key_service_pb.ts";
import { DestinationService } from "../gen/media/destination/v1/destination_service_pb.ts";
import { GenerateResponseSchema } from "../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../gen/media/image/v1/image_service_pb.ts";
import { SynthesizeResponseSchema } from "../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../gen/media/speech/v1/speech_service_pb.ts";
import { UsageService } from "../gen/media/usage/v1/usage_service_pb.ts";
import { createKeyAuthenticator, lookUpOverRpc } from "../lib/identity/authenticate.ts";
import type { Audience } from "../lib/identity/issuer.ts";
import type { TokenSigner } from "../lib/identity/service-token.ts";
import { createTokenInterceptor } from "../lib/identity/token-interceptor.ts";
import { imageMessageLimits } from "../lib/limits/image-messages.ts";
import { forwardAdmissionId } from "../lib/rate-limit/admission-id.ts";
import { createLocalTransport, createRemoteTransport, createRpcClient } from "../lib/rpc/client.ts";
import {
  defaultMessageLimits,
  type MessageLimits,
  type RegisterRoutes,
} from "../lib/rpc/registered-method.ts";
import type { RequestParts } from "../lib/rpc/transport/direct-transport.ts";
import type { Authenticate } from "./http/auth.ts";
import { imageRequestParts } from "./images/request-parts.ts";

/** The services that the gateway calls. */
type GatewayService = Extract<Audience, "account" | "speech" | "image" | "usage" | "destination">;

/** Services in this process, with how they register their RPCs. */
export type LocalServices = Readonly<Record<GatewayService, { readonly routes: RegisterRoutes }>>;

/** The services as the gateway uses them. */
export interface GatewayClients {
  speech: Client<typeof SpeechService>;
  image: Client<typeof ImageService>;
  usage: Client<typeof UsageService>;
  keys: Client<typeof KeyService>;
  credits: Client<typeof CreditService>;
  providerKeys: Client<typeof ProviderKeyService>;
  destinations: Client<typeof DestinationService>;
  consoleLinks: Pick<Client<typeof AccountInternalService>, "redeemConsoleLink">;
  authenticate: Authenticate;
}

/** What usage may answer: the activity of the whole window is one message, which grows with the catalogue. */
const usageClientLimits: MessageLimits = { ...defaultMessageLimits, readMaxBytes: 16 << 20 };

/** A page of destinations is one message, and each may have settings as large as a request. */
const destinationClientLimits: MessageLimits = { ...defaultMessageLimits, readMaxBytes: 16 << 20 };

/** Audio and images are written to their clients as they come; whole messages of them would be copies. */
const piecewiseFields: Readonly<Partial<Record<GatewayService, DescField>>> = {
  speech: SynthesizeResponseSchema.field.audio,
  image: GenerateResponseSchema.field.imageData,
};

const requestParts: Readonly<Partial<Record<GatewayService, RequestParts>>> = { image: imageRequestParts };

/** Clients of services at these addresses, such as `http://localhost:8101`, to which this one names itself by its tokens. */
export function createGatewayClients(
  urls: Readonly<Record<GatewayService, string>>,
  signer: TokenSigner,
  { maxBodyBytes }: { maxBodyBytes: number },
): GatewayClients {
  const limits: Readonly<Record<GatewayService, MessageLimits>> = {
    account: defaultMessageLimits,
    speech: defaultMessageLimits,
    image: imageClientLimits(maxBodyBytes),
    usage: usageClientLimits,
    destination: destinationClientLimits,
  };
  return createClients(signer, (service, interceptors) =>
    createRemoteTransport({
      baseUrl: urls[service],
      interceptors,
      limits: limits[service],
      piecewiseField: piecewiseFields[service],
      requestParts: requestParts[service],
    }),
  );
}

/** The limits of the image service's port, seen from the other side. */
function imageClientLimits(maxBodyBytes: number): MessageLimits {
  const { readMaxBytes, writeMaxBytes } = imageMessageLimits(maxBodyBytes);
  return { readMaxBytes: writeMaxBytes, writeMaxBytes: readMaxBytes };
}

/** Clients of services in this process; the tokens are the same. */
export function createLocalClients(services: LocalServices, signer: TokenSigner): GatewayClients {
  return createClients(signer, (service, interceptors) =>
    createLocalTransport(services[service].routes, { interceptors }),
  );
}

function createClients(
  signer: TokenSigner,
  transportOf: (service: GatewayService, interceptors: Interceptor[]) => Transport,
): GatewayClients {
  const transport = (audience: GatewayService) =>
    transportOf(audience, [createTokenInterceptor({ signer, audience }), forwardAdmissionId]);
  const account = transport("account");
  const internal = createRpcClient(AccountInternalService, account);
  return {
    speech: createRpcClient(SpeechService, transport("speech")),
    image: createRpcClient(ImageService, transport("image")),
    usage: createRpcClient(UsageService, transport("usage")),
    keys: createRpcClient(KeyService, account),
    credits: createRpcClient(CreditService, account),
    providerKeys: createRpcClient(ProviderKeyService, account),
    destinations: createRpcClient(DestinationService, transport("destination")),
    consoleLinks: internal,
    authenticate: createKeyAuthenticator({ lookUp: lookUpOverRpc(internal) }),
  };
}
