import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import type { DescService } from "@bufbuild/protobuf";
import {
  type Client,
  createClient,
  createRouterTransport,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "./domain-error.ts";
import { forwardRequestId } from "./interceptors.ts";
import { defaultMessageLimits, type MessageLimits, type RegisterRoutes } from "./rpc-handler.ts";

/** How a process reaches another one. */
export interface RemoteOptions {
  /** Such as `http://localhost:8103`. */
  baseUrl: string;
  /** Applied inside of ours: identity. */
  interceptors?: readonly Interceptor[];
  /** Must not exceed the server's; defaults to 1 MiB a message each way. */
  limits?: MessageLimits;
  /** The deadline of calls that name none, milliseconds. */
  defaultTimeoutMs?: number;
}

/** Deadline of a short call between processes, milliseconds. */
const shortCallTimeoutMs = 5000;
/** Shorter than the idle time-out of our servers, so that no request meets a closing connection. */
const idleSocketTimeoutMs = 30_000;
const maxSocketsIdle = 256;

/**
 * A transport to another process: Connect over HTTP/1.1, which costs less CPU than HTTP/2 for streams of many frames,
 * with kept connections, no compression and a deadline on every call.
 */
export function createRemoteTransport(options: RemoteOptions): Transport {
  const agentOptions = { keepAlive: true, maxFreeSockets: maxSocketsIdle, timeout: idleSocketTimeoutMs };
  const agent = options.baseUrl.startsWith("https:") ? new TlsAgent(agentOptions) : new Agent(agentOptions);
  return createConnectTransport({
    baseUrl: options.baseUrl,
    httpVersion: "1.1",
    nodeOptions: { agent },
    acceptCompression: [],
    interceptors: [translateClientErrors, forwardRequestId, ...(options.interceptors ?? [])],
    defaultTimeoutMs: options.defaultTimeoutMs ?? shortCallTimeoutMs,
    ...(options.limits ?? defaultMessageLimits),
  });
}

/** A transport to handlers in this process: same interceptors, errors and deadlines, no socket. */
export function createLocalTransport(
  routes: RegisterRoutes,
  options: Pick<RemoteOptions, "interceptors" | "defaultTimeoutMs"> = {},
): Transport {
  return createRouterTransport(routes, {
    transport: {
      interceptors: [translateClientErrors, forwardRequestId, ...(options.interceptors ?? [])],
      defaultTimeoutMs: options.defaultTimeoutMs ?? shortCallTimeoutMs,
    },
  });
}

/** A client of a service; throws DomainError only. */
export function createRpcClient<S extends DescService>(service: S, transport: Transport): Client<S> {
  return createClient(service, transport);
}

/** Errors as DomainErrors, without the address of the process that could not be reached. */
const translateClientErrors: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: translateStream(response.message) } : response;
  } catch (thrown) {
    throw safeError(thrown);
  }
};

async function* translateStream<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* source;
  } catch (thrown) {
    throw safeError(thrown);
  }
}

function safeError(thrown: unknown): DomainError {
  const error = DomainError.from(thrown);
  if (error.reason !== ErrorReason.SERVICE_UNAVAILABLE && error.reason !== ErrorReason.INTERNAL) return error;
  const { retryAfterMs, generationId } = error;
  return new DomainError(error.reason, "a service that this depends on failed", {
    cause: thrown,
    generationId,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/**
 * Consumes a server stream and makes sure that the call ends with it: leaving a `for await` over a Connect stream
 * early does not cancel the call, so the signal given to `open` is aborted whenever the consumer stops.
 */
export async function* consumeStream<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
  signal?: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    yield* open(controller.signal);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    controller.abort();
  }
}
