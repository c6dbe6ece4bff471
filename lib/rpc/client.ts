import type { DescField, DescService } from "@bufbuild/protobuf";
import {
  type CallOptions,
  type Client,
  Code,
  ConnectError,
  createClient,
  createConnectRouter,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import {
  type CommonTransportOptions,
  createUniversalHandlerClient,
  type UniversalClientFn,
} from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { createNodeHttpClient } from "@connectrpc/connect-node";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { isPeerAway } from "../runtime/peer-away.ts";
import { traceOutgoingCalls } from "./call-spans.ts";
import { forwardRequestId } from "./interceptors.ts";
import { createPatientAgent } from "./patient-agent.ts";
import { defaultMessageLimits, type MessageLimits, type RegisterRoutes } from "./registered-method.ts";
import { createPiecewiseTransport } from "./request/incoming-bytes.ts";
import { createPartwiseTransport, type RequestParts } from "./request/request-parts.ts";

interface CallingOptions {
  /** Applied inside of ours: identity. */
  interceptors?: readonly Interceptor[];
  /** The deadline of calls that name none, milliseconds. */
  defaultTimeoutMs?: number;
  /**
   * A field of bytes that streams give as it arrives, in pieces of any size, a message for each; of messages that have
   * nothing else. Interceptors see such a message once, without its bytes.
   */
  piecewiseField?: DescField | undefined;
  /** Requests of streams that are sent in parts. */
  requestParts?: RequestParts | undefined;
}

interface RemoteOptions extends CallingOptions {
  /** Such as `http://localhost:8103`. */
  baseUrl: string;
  /** Must not exceed the server's; defaults to 1 MiB a message each way. */
  limits?: MessageLimits;
}

const shortCallTimeoutMs = 5000;

/**
 * A transport to another process: Connect over HTTP/1.1, which costs less CPU than HTTP/2 for streams of many frames,
 * with kept connections, no compression and a deadline on every call. A call is made once; patient-agent.ts says what
 * is tried again.
 */
export function createRemoteTransport(options: RemoteOptions): Transport {
  const { baseUrl, limits = defaultMessageLimits } = options;
  const agent = createPatientAgent(baseUrl);
  const httpClient = createNodeHttpClient({ httpVersion: "1.1", nodeOptions: { agent } });
  return transportOver(httpClient, { baseUrl, limits }, options);
}

/** A transport to handlers in this process: same interceptors, errors and deadlines, no socket, no limits. */
export function createLocalTransport(routes: RegisterRoutes, options: CallingOptions = {}): Transport {
  const router = createConnectRouter({ grpc: false, grpcWeb: false });
  routes(router);
  const httpClient = createUniversalHandlerClient(router.handlers);
  const limits = { readMaxBytes: 0xffff_ffff, writeMaxBytes: 0xffff_ffff };
  return transportOver(httpClient, { baseUrl: "https://in-memory", limits }, options);
}

function transportOver(
  httpClient: UniversalClientFn,
  { baseUrl, limits }: { baseUrl: string; limits: MessageLimits },
  calling: CallingOptions,
): Transport {
  const { interceptors = [], defaultTimeoutMs = shortCallTimeoutMs, piecewiseField: field } = calling;
  const transportOptions: Omit<CommonTransportOptions, "httpClient"> = {
    baseUrl,
    useBinaryFormat: true,
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    interceptors: [forwardRequestId, traceOutgoingCalls, ...interceptors],
    defaultTimeoutMs,
    ...limits,
  };
  const createStock = (client: UniversalClientFn) =>
    createTransport({ ...transportOptions, httpClient: client });
  const create = (client: UniversalClientFn) =>
    field === undefined
      ? createStock(client)
      : createPiecewiseTransport({ field, maxMessageBytes: limits.readMaxBytes }, client, createStock);
  if (calling.requestParts === undefined) return create(httpClient);
  const sending = { httpClient, maxMessageBytes: limits.writeMaxBytes };
  return createPartwiseTransport(calling.requestParts, sending, create);
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
  const error = isUnanswered(thrown)
    ? new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "no answer", { cause: thrown })
    : DomainError.from(thrown);
  if (error.reason !== ErrorReason.SERVICE_UNAVAILABLE && error.reason !== ErrorReason.INTERNAL) return error;
  const { reason, retryAfterMs, generationId } = error;
  const options = { cause: thrown, generationId, retryAfterMs };
  return new DomainError(reason, "a service that this depends on failed", options);
}

/** Of what this side makes up itself, the codes that say what has happened here; the rest says that no peer answered. */
const ownCodes: ReadonlySet<Code> = new Set([Code.Canceled, Code.DeadlineExceeded, Code.ResourceExhausted]);

/**
 * Whether a call ended without an answer of the service: its connection broke, or what came back is not its protocol,
 * as from a proxy whose service is away or in an answer that was cut. Internal is a bug of ours unless a connection is
 * behind it.
 */
function isUnanswered(thrown: unknown): boolean {
  if (!(thrown instanceof ConnectError)) return !(thrown instanceof DomainError) && isPeerAway(thrown);
  if (thrown.isWireError || ownCodes.has(thrown.code) || thrown.cause instanceof DomainError) return false;
  return thrown.code !== Code.Internal || isPeerAway(thrown);
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
