import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, ServiceImpl, Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { type SynthesizeResponse, SynthesizeResponseSchema } from "../../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { serverInterceptor } from "../../../lib/rpc/interceptors.ts";
import { type RpcServer, type RpcServerOptions, startRpcServer } from "../../../lib/rpc/server.ts";
import { silentLog } from "../../../lib/runtime/log.ts";

/** A running server of the speech service whose handlers a test wrote. */
export interface SpeechServer extends RpcServer {
  readonly baseUrl: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a test changes about the server: its handlers and any of its options. */
export interface SpeechServerOptions extends Partial<RpcServerOptions> {
  handlers?: Partial<ServiceImpl<typeof SpeechService>>;
}

/** Registers the speech service with the given handlers; without them it answers with an empty list and one frame. */
export function speechRoutes(handlers: SpeechServerOptions["handlers"] = {}, log = silentLog) {
  return (router: ConnectRouter) =>
    router.service(
      SpeechService,
      {
        listSpeechModels: () => ({ models: [{ id: "acme/one" }] }),
        async *synthesize() {
          yield audioFrame(1);
        },
        ...handlers,
      },
      { interceptors: [serverInterceptor(log)] },
    );
}

/** Starts it on a free port of the loopback interface. */
export async function startSpeechServer(options: SpeechServerOptions = {}): Promise<SpeechServer> {
  const { handlers, ...rest } = options;
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [SpeechService],
    routes: speechRoutes(handlers, options.log),
    readiness: async () => [],
    log: silentLog,
    ...rest,
  });
  return {
    ...server,
    baseUrl: `${options.tls === undefined ? "http" : "https"}://localhost:${server.port}`,
    [Symbol.asyncDispose]: () => server.drain({ delayMs: 0, timeoutMs: 0 }),
  };
}

/** A frame of as many bytes as said. */
export function audioFrame(bytes: number): SynthesizeResponse {
  return create(SynthesizeResponseSchema, { frame: { case: "audio", value: new Uint8Array(bytes) } });
}

/** How many bytes of audio a frame holds. */
export function audioLength(response: SynthesizeResponse): number {
  return response.frame.case === "audio" ? response.frame.value.length : 0;
}

/** Every way in which a client may speak to the port, made with stock transports. */
export const transportNames = [
  "Connect over HTTP/1.1",
  "Connect with JSON over HTTP/1.1",
  "Connect over HTTP/2",
  "gRPC",
  "gRPC-Web over HTTP/1.1",
  "gRPC-Web over HTTP/2",
] as const;

/** One of `transportNames`. */
export type TransportName = (typeof transportNames)[number];

/** A stock transport with limits far above any server's. */
export function stockTransport(name: TransportName, baseUrl: string, nodeOptions: object = {}): Transport {
  const options = {
    baseUrl,
    acceptCompression: [],
    writeMaxBytes: 1 << 30,
    readMaxBytes: 1 << 30,
    nodeOptions,
  };
  const http1 = { ...options, httpVersion: "1.1" } as const;
  const sessionManager = new Http2SessionManager(baseUrl, {}, nodeOptions);
  const http2 = { ...options, httpVersion: "2", sessionManager } as const;
  switch (name) {
    case "Connect over HTTP/1.1":
      return createConnectTransport(http1);
    case "Connect with JSON over HTTP/1.1":
      return createConnectTransport({ ...http1, useBinaryFormat: false });
    case "Connect over HTTP/2":
      return createConnectTransport(http2);
    case "gRPC":
      return createGrpcTransport({ ...options, sessionManager });
    case "gRPC-Web over HTTP/1.1":
      return createGrpcWebTransport(http1);
    case "gRPC-Web over HTTP/2":
      return createGrpcWebTransport(http2);
  }
}
