import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import type { DescService } from "@bufbuild/protobuf";
import {
  type CallOptions,
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
    interceptors: [forwardRequestId, ...(options.interceptors ?? [])],
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
      interceptors: [forwardRequestId, ...(options.interceptors ?? [])],
      defaultTimeoutMs: options.defaultTimeoutMs ?? shortCallTimeoutMs,
    },
  });
}

/**
 * A client of a service; throws DomainError only, without the address of a process that could not be reached. Leaving
 * a stream early does not cancel its call: see consumeStream.
 */
export function createRpcClient<S extends DescService>(service: S, transport: Transport): Client<S> {
  const client = createClient(service, transport) as Record<string, Call>;
  const calls = service.methods.map(({ localName }) => [localName, withSafeErrors(client[localName])]);
  return Object.fromEntries(calls);
}

type Call = (request: unknown, options?: CallOptions) => Promise<unknown> | AsyncIterable<unknown>;

/** Here, and not in an interceptor: Connect wraps what interceptors throw. */
function withSafeErrors(call: Call | undefined): Call | undefined {
  if (call === undefined) return undefined;
  return (request, options) => {
    const answer = call(request, options);
    return Symbol.asyncIterator in answer ? streamWithSafeErrors(answer) : answer.catch(rethrowSafely);
  };
}

function streamWithSafeErrors<T>(source: AsyncIterable<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      return { next: () => iterator.next().catch(rethrowSafely) };
    },
  };
}

function rethrowSafely(thrown: unknown): never {
  throw safeError(thrown);
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
export function consumeStream<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
  signal?: AbortSignal,
): AsyncIterableIterator<T, undefined> {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  const leave = () => {
    signal?.removeEventListener("abort", onAbort);
    controller.abort();
  };
  let iterator: AsyncIterator<T> | undefined;
  const received = (result: IteratorResult<T>): IteratorResult<T, undefined> => {
    if (!result.done) return result;
    signal?.removeEventListener("abort", onAbort);
    return { done: true, value: undefined };
  };
  const failed = (thrown: unknown): never => {
    leave();
    throw thrown;
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      iterator ??= open(controller.signal)[Symbol.asyncIterator]();
      return iterator.next().then(received, failed);
    },
    return() {
      leave();
      return Promise.resolve({ done: true, value: undefined });
    },
  };
}
