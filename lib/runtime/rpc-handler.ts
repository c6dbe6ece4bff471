import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextValues,
} from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { peerAddressKey } from "./client-address.ts";
import type { Log } from "./log.ts";
import { withUncopiedBytes } from "./outgoing-bytes.ts";
import type { NodeRequest, NodeResponse } from "./port-listener.ts";

/** Registers the RPCs of one or more services. */
export type RegisterRoutes = (router: ConnectRouter) => void;

/** Limits of the messages that an RPC port takes and gives, bytes each. */
export interface MessageLimits {
  readMaxBytes: number;
  writeMaxBytes: number;
}

/** 1 MiB both ways: every service but image. */
export const defaultMessageLimits: MessageLimits = { readMaxBytes: 1 << 20, writeMaxBytes: 1 << 20 };

/** Longest deadline a caller may ask for, milliseconds: above every operation's own. */
const maxTimeoutMs = 900_000;

/**
 * A Node handler that answers RPCs of the registered services over Connect, gRPC and gRPC-Web; what is no RPC goes to
 * `fallback`. Like connectNodeAdapter, but failed writes go to our log.
 */
export function createRpcHandler(
  routes: RegisterRoutes,
  limits: MessageLimits,
  log: Log,
  fallback: (request: NodeRequest, response: NodeResponse) => void,
): (request: NodeRequest, response: NodeResponse) => void {
  const router = createConnectRouter({
    ...limits,
    maxTimeoutMs,
    // Callers may ask for compression; processes of ours never do.
    acceptCompression: [compressionGzip, compressionBrotli],
  });
  routes(router);
  const handlers = new Map(
    router.handlers.map((handler) => [handler.requestPath, withUncopiedBytes(handler)]),
  );
  return (request, response) => {
    const path = request.url ?? "";
    const query = path.indexOf("?");
    const handler = handlers.get(query < 0 ? path : path.slice(0, query));
    if (handler === undefined) {
      fallback(request, response);
      return;
    }
    const values = createContextValues().set(peerAddressKey, request.socket.remoteAddress ?? "");
    const universalRequest = universalRequestFromNodeRequest(request, response, undefined, values);
    handler(universalRequest)
      .then((answer) => universalResponseToNodeResponse(answer, response))
      .catch((thrown: unknown) => {
        const code = ConnectError.from(thrown).code;
        if (code === Code.Aborted || code === Code.Canceled || response.destroyed) return;
        log.warn({ err: thrown, rpc: handler.requestPath }, "rpc answer could not be written");
        response.destroy();
      });
  };
}
