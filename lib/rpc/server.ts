import { setTimeout as delay } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import { Health } from "../../gen/health/v1/health_pb.ts";
import type { Log } from "../runtime/log.ts";
import type { LoopDelay } from "../runtime/loop-delay.ts";
import { ProcessHealth, type Readiness } from "./health.ts";
import { answerPreflight } from "./port/cors.ts";
import { openPort } from "./port/open-port.ts";
import {
  listenOnPort,
  type NodeRequest,
  type NodeResponse,
  type PortListenerOptions,
} from "./port/port-listener.ts";
import { reflectionRoutes } from "./reflection.ts";
import { defaultMessageLimits, type MessageLimits, type RegisterRoutes } from "./registered-method.ts";
import { requestIdFrom, requestIdHeader } from "./request-context.ts";
import { createRpcHandler } from "./rpc-handler.ts";

/** What a process serves on its RPC port. */
export interface RpcServerOptions extends Pick<PortListenerOptions, "host" | "port"> {
  /** The variable that the port is chosen by, for whoever can't have it; PORT unless given. */
  portVariable?: string;
  /** Certificate and key; plain TCP without it. */
  tls?: PortListenerOptions["tls"] | undefined;
  /** The services that reflection and health name. */
  services: readonly DescService[];
  /** Registers their handlers, with their interceptors. */
  routes: RegisterRoutes;
  /** Of services that state none; defaults to 1 MiB a message each way. */
  limits?: MessageLimits;
  /** How long a request's body may take to come; 30 s unless given. */
  bodyTimeoutMs?: number;
  readiness: Readiness;
  /** Origins whose pages may call over Connect and gRPC-Web; none unless given. */
  corsOrigins?: readonly string[];
  /** Answers `GET /metrics`; false for all else. No metrics unless given. */
  metrics?: ((request: NodeRequest, response: NodeResponse) => boolean) | undefined;
  /** Notified of the requests that run. */
  loopDelay?: LoopDelay | undefined;
  /** Work that may go on after the calls that began it; none unless given. */
  running?: { ended(timeoutMs: number): Promise<void> } | undefined;
  log: Log;
}

/** How a server goes down: unready but accepting at first, then at most `timeoutMs` for what still runs. */
export interface DrainOptions {
  /**
   * How long it goes on accepting, and how long it leaves a connection open whose client was not told to leave; longer
   * than clients keep connections that they don't use.
   */
  delayMs: number;
  timeoutMs: number;
}

/** A running RPC port. */
export interface RpcServer {
  readonly port: number;
  readonly health: ProcessHealth;
  /** Resolves when every call has ended, and the work that goes on after them, or at the limit. */
  drain(options: DrainOptions): Promise<void>;
}

/**
 * Serves RPCs on one port: Connect and gRPC-Web over HTTP/1.1 and HTTP/2, gRPC over HTTP/2, reflection,
 * grpc.health.v1, `/healthz` and `/readyz` for probes, and `/metrics`. Throws StartError when the port can't be had.
 */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const health = new ProcessHealth(options.readiness);
  const open = [
    health.routes(options.services.map(({ typeName }) => typeName)),
    reflectionRoutes([...options.services, Health]),
  ];
  const handle = createRpcHandler(
    (router) => {
      options.routes(router);
      for (const register of open) register(router);
    },
    {
      limits: options.limits ?? defaultMessageLimits,
      log: options.log,
      bodyTimeoutMs: options.bodyTimeoutMs,
      fallback: (request, response) => {
        if (!options.metrics?.(request, response)) answerOther(health, request, response);
      },
    },
  );
  const { host, port, portVariable: variable = "PORT" } = options;
  const listener = await openPort({ variable, host, port }, (address) =>
    listenOnPort({
      host: address,
      port,
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      handle(request, response) {
        options.loopDelay?.during(response);
        const requestId = requestIdFrom(offeredRequestId(request));
        response.setHeader(requestIdHeader, requestId);
        if (!answerPreflight(options.corsOrigins ?? [], request, response)) {
          handle(request, response, requestId);
        }
      },
    }),
  );
  return {
    port: listener.port,
    health,
    async drain({ delayMs, timeoutMs }) {
      health.startDraining();
      listener.startDraining();
      if (delayMs > 0) await delay(delayMs);
      const byMs = performance.now() + timeoutMs;
      await listener.close({ quietMs: delayMs, timeoutMs });
      await options.running?.ended(Math.max(0, byMs - performance.now()));
    },
  };
}

function offeredRequestId({ headers }: NodeRequest): string | undefined {
  const offered = headers[requestIdHeader];
  return typeof offered === "string" ? offered : undefined;
}

function answerOther(health: ProcessHealth, request: NodeRequest, response: NodeResponse): void {
  if (health.answer(request, response)) return;
  response.statusCode = 404;
  response.setHeader("content-type", "application/json");
  response.end('{"code":"unimplemented","message":"no such RPC"}\n');
}
