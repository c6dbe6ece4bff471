import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import sharp from "sharp";
import { PrincipalSchema } from "../../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../../gen/media/account/v1/key_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { createGuardedFetch } from "../../../lib/http/guarded-fetch.ts";
import { createOutboundHttp } from "../../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../../lib/http/url-guard.ts";
import type { LimitedRequest } from "../../../lib/rate-limit/limiter.ts";
import { createRpcClient } from "../../../lib/rpc/client.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../../providers/catalog/load.ts";
import { createProviders } from "../../../providers/registry.ts";
import { createImageService } from "../../../services/image/image-service.ts";
import { createSpeechService } from "../../../services/speech/speech-service.ts";
import { FakePaidRequests } from "../../fakes/fake-paid-requests.ts";
import { noResultFetches } from "../../fakes/no-results.ts";
import { unlimited } from "../../fakes/unlimited.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../upstreams/openai/openai.ts";
import { openAiEnv } from "../processes/standalone.ts";
import { startTcpProxy, type TcpProxy } from "../tcp-proxy.ts";
import { stockTransport } from "./speech-server.ts";

/** Both generating services on a port, a stand-in for their vendor, and clients whose connection can be cut. */
export interface LeavingScene extends AsyncDisposable {
  readonly upstream: OpenAiUpstream;
  readonly paid: FakePaidRequests;
  readonly speech: Client<typeof SpeechService>;
  readonly image: Client<typeof ImageService>;
  readonly headers: Readonly<Record<string, string>>;
  readonly proxy: TcpProxy;
  /** From now on no request's body is read by the upstream before this resolves. */
  holdBodies(until: Promise<void>): void;
  /** How many requests' headers the upstream has seen. */
  readonly begun: number;
  /** Whether a service has heard that its caller left; the deadline of a call is one of its ways. */
  readonly hasLeft: boolean;
}

const longMs = 60_000;
const maxBodyBytes = 64 << 20;
const anyKey = { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH, KeyScope.IMAGES] };

/** Starts it. */
export async function startLeavingScene(): Promise<LeavingScene> {
  let held: Promise<void> | undefined;
  let begun = 0;
  let call: AbortSignal | undefined;
  const upstream = await startOpenAiUpstream({
    beforeBody() {
      begun += 1;
      return held;
    },
  });
  const proxy = await startTcpProxy();
  const paid = new FakePaidRequests();
  const services = await serveBoth(upstream, paid, (signal) => {
    call = signal;
  });
  proxy.connectTo(services.port);
  const transport = stockTransport("Connect over HTTP/2", `http://127.0.0.1:${proxy.port}`);
  return {
    upstream,
    paid,
    proxy,
    speech: createRpcClient(SpeechService, transport),
    image: createRpcClient(ImageService, transport),
    headers: { authorization: "Bearer sk-a-key" },
    holdBodies(until) {
      held = until;
    },
    get begun() {
      return begun;
    },
    get hasLeft() {
      return call?.aborted === true;
    },
    async [Symbol.asyncDispose]() {
      await proxy.close();
      await services.close();
    },
  };
}

const room = { maxBodyBytes, maxInflightReferenceBytes: 4 * maxBodyBytes };

/** Puts both services on a port; `onCall` hears of the signal of each call. */
async function serveBoth(
  upstream: OpenAiUpstream,
  paid: FakePaidRequests,
  onCall: (signal: AbortSignal) => void,
) {
  const http = createOutboundHttp();
  const environment = openAiEnv(upstream);
  const providers = createProviders({ environment, http, results: noResultFetches, log: silentLog });
  const fetchReference = createGuardedFetch({ guard: createAddressGuard({ allowedCidrs: [] }) });
  const both = {
    catalog: await loadCatalog({ directories: [builtInCatalogDirectory], providerSlugs: providers.slugs }),
    providers,
    paid,
    limiter: {
      ...unlimited,
      admit(request: LimitedRequest, signal: AbortSignal) {
        onCall(signal);
        return unlimited.admit(request, signal);
      },
    },
    recordProviderTest: async () => undefined,
    limits: { firstByteTimeoutMs: longMs, idleTimeoutMs: longMs, timeoutMs: longMs },
    authenticateKey: async () => create(PrincipalSchema, anyKey),
    verifyToken: () => Promise.reject(new Error("nobody has a token")),
    log: silentLog,
  };
  const services = [createSpeechService(both), createImageService({ ...both, ...room, fetchReference })];
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [SpeechService, ImageService],
    routes: (router) => services.forEach(({ routes }) => void routes(router)),
    readiness: async () => [],
    running: paid.running,
    log: silentLog,
  });
  const close = async () => {
    await server.drain({ delayMs: 0, timeoutMs: 0 });
    await upstream.close();
    for (const part of [providers, fetchReference, http]) await part.close();
  };
  return { port: server.port, close };
}

/** A picture of noise whose bytes are about so many. */
export async function largePicture(side: number): Promise<Uint8Array> {
  const noise = { type: "gaussian", mean: 128, sigma: 60 } as const;
  const background = { r: 0, g: 0, b: 0 };
  return await sharp({ create: { width: side, height: side, channels: 3, background, noise } })
    .png({ compressionLevel: 0 })
    .toBuffer();
}
