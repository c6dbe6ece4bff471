import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextValues,
  type MethodImpl,
} from "@connectrpc/connect";
import type { Compression, UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { peerAddressKey } from "../runtime/client-address.ts";
import type { Log } from "../runtime/log.ts";
import { isPeerAway } from "../runtime/peer-away.ts";
import { createDirectHandler, type DirectHandler, type RequestIdentity } from "./direct-handler.ts";
import type { NodeRequest, NodeResponse } from "./port/port-listener.ts";
import {
  type MessageLimits,
  type RegisteredMethod,
  type RegisterRoutes,
  registeredMethods,
} from "./registered-method.ts";
import { compressions } from "./request/request-message.ts";
import { RequestReader } from "./request/request-reader.ts";
import { leaveUnread } from "./request/unread-body.ts";
import { requestIdKey } from "./request-context.ts";

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
 * have let it pass (request-reader.ts): what direct-handler.ts takes there, all else by the library. Like
 * connectNodeAdapter, but failed writes go to our log.
 */
export function createRpcHandler(routes: RegisterRoutes, options: RpcHandlerOptions): RpcHandler {
  const { limits, log, fallback, bodyTimeoutMs = defaultBodyTimeoutMs } = options;
  const reader = new RequestReader(bodyTimeoutMs);
  const methods = createMethodHandlers(registeredMethods(routes, limits), reader);
  return (request, response, requestId) => {
    const path = request.url ?? "";
    const query = path.indexOf("?");
    const handlers = methods.get(query < 0 ? path : path.slice(0, query));
    leaveUnread(request, response);
    if (handlers === undefined) {
      fallback(request, response);
      return;
    }
    const identity = identify(request, requestId);
    if (identity === undefined) {
      response.statusCode = 400;
      response.end();
      return;
    }
    const { direct, stock } = handlers;
    const answered =
      direct?.takes(request) === true
        ? direct.handle(request, response, identity)
        : answerByLibrary(stock, reader, { request, response, identity });
    answered.catch((thrown: unknown) => {
      const { code } = ConnectError.from(thrown);
      const isGone = code === Code.Aborted || code === Code.Canceled || isPeerAway(thrown);
      if (isGone || response.destroyed) return;
      log.warn({ err: thrown, rpc: stock.requestPath }, "rpc answer could not be written");
      response.destroy();
    });
  };
}

interface MethodHandlers {
  readonly stock: UniversalHandler;
  readonly direct: DirectHandler | undefined;
}

/** The handlers of all methods by path. */
function createMethodHandlers(
  registered: readonly RegisteredMethod[],
  reader: RequestReader,
): ReadonlyMap<string, MethodHandlers> {
  const router = createConnectRouter({ maxTimeoutMs });
  for (const { spec, interceptors, readMaxBytes, writeMaxBytes } of registered) {
    const limits = reader.limitsOf(spec.method, readMaxBytes);
    router.rpc(spec.method, spec.impl as MethodImpl<DescMethod>, {
      writeMaxBytes,
      // Both for streams of requests alone: the others are empty when the stock handlers get them.
      readMaxBytes: Math.min(readMaxBytes, maxStreamedMessageBytes),
      acceptCompression: takesStream(spec.method) ? [...compressions] : compressionsOfEmpty,
      interceptors: [...interceptors, reader.interceptor(limits)],
    });
  }
  return new Map(
    router.handlers.map((stock, index) => {
      const direct = createDirectHandler(registered[index] as RegisteredMethod, { reader, maxTimeoutMs });
      return [stock.requestPath, { stock, direct }];
    }),
  );
}

/** A request on its way, and the answer to it. */
interface Exchange {
  readonly request: NodeRequest;
  readonly response: NodeResponse;
  readonly identity: RequestIdentity;
}

async function answerByLibrary(
  handler: UniversalHandler,
  reader: RequestReader,
  { request, response, identity: { values } }: Exchange,
): Promise<void> {
  const universal = {
    ...universalRequestFromNodeRequest(request, response, undefined, values),
    contextValues: values,
  };
  const isStream = takesStream(handler.method);
  if (isStream) endWhenSilent(request);
  const answer = await handler(isStream ? universal : reader.withhold(universal, request, response));
  await universalResponseToNodeResponse(answer, response);
}

/** What takes an empty message for compressed where its request says so. */
const compressionsOfEmpty: Compression[] = compressions.map((compression) => ({
  ...compression,
  decompress: async (bytes) => new Uint8Array(bytes),
}));

/** Undefined where the request names no host that a URL can be made with. */
function identify(request: NodeRequest, requestId: string): RequestIdentity | undefined {
  const { headers, socket, url = "" } = request;
  const authority = "authority" in request ? request.authority : headers.host;
  const scheme = "encrypted" in socket && socket.encrypted ? "https" : "http";
  const full = authority === undefined ? null : URL.parse(url, `${scheme}://${authority}`);
  if (full === null) return undefined;
  const values = createContextValues()
    .set(requestIdKey, requestId)
    .set(peerAddressKey, socket.remoteAddress ?? "");
  return { url: full.toString(), values };
}

function takesStream(method: DescMethod): boolean {
  return method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
}

/** Such streams need HTTP/2: the stock handler refuses others. */
function endWhenSilent(request: NodeRequest): void {
  if ("stream" in request) request.stream.setTimeout(silentStreamMs, () => request.stream.destroy());
}
