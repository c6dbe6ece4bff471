import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextValues,
} from "@connectrpc/connect";
import type { Compression, UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { peerAddressKey } from "../runtime/client-address.ts";
import type { Log } from "../runtime/log.ts";
import { isPeerAway } from "../runtime/peer-away.ts";
import { withUncopiedBytes } from "./port/outgoing-bytes.ts";
import type { NodeRequest, NodeResponse } from "./port/port-listener.ts";
import { compressions } from "./request/request-message.ts";
import { RequestReader } from "./request/request-reader.ts";
import { leaveUnread } from "./request/unread-body.ts";
import { requestIdKey } from "./request-context.ts";

/** Registers the RPCs of one or more services. */
export type RegisterRoutes = (router: ConnectRouter) => void;

/** Limits of the messages that an RPC port takes and gives, bytes each. Requests have lower ones by RPC. */
export interface MessageLimits {
  readMaxBytes: number;
  writeMaxBytes: number;
}

/** 1 MiB both ways: every service but image. */
export const defaultMessageLimits: MessageLimits = { readMaxBytes: 1 << 20, writeMaxBytes: 1 << 20 };

/** Longest deadline a caller may ask for, milliseconds: above every operation's own. */
const maxTimeoutMs = 900_000;

/**
 * How long a request's body may take to come unless an option says else, milliseconds. A constant: BODY_TIMEOUT_MS is for
 * what the world sends to the gateway over whatever line it has. Here it is a bound on what holds room, 33 MiB at most.
 */
const defaultBodyTimeoutMs = 30_000;
/** Of each message in a stream of requests. */
const maxStreamedMessageBytes = 64 << 10;
/** How long a stream of requests may bring and take nothing, milliseconds. */
const silentStreamMs = 120_000;

/** What bounds an RPC port, and what answers the rest of its requests. */
interface RpcHandlerOptions {
  /** Of services that state none themselves. */
  readonly limits: MessageLimits;
  readonly log: Log;
  readonly bodyTimeoutMs?: number | undefined;
  readonly fallback: (request: NodeRequest, response: NodeResponse) => void;
}

type RpcHandler = (request: NodeRequest, response: NodeResponse, requestId: string) => void;

/**
 * A handler that answers RPCs of the registered services over Connect, gRPC and gRPC-Web, each when its interceptors
 * have let it pass (request-reader.ts). Like connectNodeAdapter, but failed writes go to our log.
 */
export function createRpcHandler(routes: RegisterRoutes, options: RpcHandlerOptions): RpcHandler {
  const { limits, log, fallback, bodyTimeoutMs = defaultBodyTimeoutMs } = options;
  const registered = registerRoutes(routes, limits, bodyTimeoutMs);
  return (request, response, requestId) => {
    const path = request.url ?? "";
    const query = path.indexOf("?");
    const handler = registered.handlers.get(query < 0 ? path : path.slice(0, query));
    leaveUnread(request, response);
    if (handler === undefined) {
      fallback(request, response);
      return;
    }
    const universal = toUniversal(request, response, requestId);
    if (universal === undefined) {
      response.statusCode = 400;
      response.end();
      return;
    }
    const isStream = takesStream(handler.method);
    if (isStream) endWhenSilent(request);
    handler(isStream ? universal : registered.reader.withhold(universal, request, response))
      .then((answer) => universalResponseToNodeResponse(answer, response))
      .catch((thrown: unknown) => {
        const { code } = ConnectError.from(thrown);
        const isGone = code === Code.Aborted || code === Code.Canceled || isPeerAway(thrown);
        if (isGone || response.destroyed) return;
        log.warn({ err: thrown, rpc: handler.requestPath }, "rpc answer could not be written");
        response.destroy();
      });
  };
}

/** The handlers by path, and what reads their requests. */
function registerRoutes(routes: RegisterRoutes, limits: MessageLimits, bodyTimeoutMs: number) {
  const router = createConnectRouter({ ...limits, maxTimeoutMs });
  const reader = new RequestReader(bodyTimeoutMs);
  const withReader = (methods: readonly DescMethod[], options: Partial<UniversalHandlerOptions> = {}) => {
    const readMaxBytes = options.readMaxBytes ?? limits.readMaxBytes;
    return {
      ...options,
      // Both for streams of requests alone: the others are empty when the stock handlers get them.
      readMaxBytes: Math.min(readMaxBytes, maxStreamedMessageBytes),
      acceptCompression: methods.some(takesStream) ? [...compressions] : compressionsOfEmpty,
      interceptors: [...(options.interceptors ?? []), reader.interceptor(methods, readMaxBytes)],
    };
  };
  routes({
    handlers: router.handlers,
    service(service, implementation, options) {
      router.service(service, implementation, withReader(service.methods, options));
      return this;
    },
    rpc(method, implementation, options) {
      router.rpc(method, implementation, withReader([method], options));
      return this;
    },
  });
  const handlers = new Map(
    router.handlers.map((handler) => [handler.requestPath, withUncopiedBytes(handler)]),
  );
  return { handlers, reader };
}

/** What takes an empty message for compressed where its request says so. */
const compressionsOfEmpty: Compression[] = compressions.map((compression) => ({
  ...compression,
  decompress: async (bytes) => new Uint8Array(bytes),
}));

/** Undefined where the request names no host that a URL can be made with. */
function toUniversal(request: NodeRequest, response: NodeResponse, requestId: string) {
  const contextValues = createContextValues()
    .set(requestIdKey, requestId)
    .set(peerAddressKey, request.socket.remoteAddress ?? "");
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, contextValues);
    return { ...universal, contextValues };
  } catch {
    return undefined;
  }
}

function takesStream(method: DescMethod): boolean {
  return method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
}

/** Such streams need HTTP/2: the stock handler refuses others. */
function endWhenSilent(request: NodeRequest): void {
  if ("stream" in request) request.stream.setTimeout(silentStreamMs, () => request.stream.destroy());
}
