import type { DescField, DescMethodServerStreaming, DescService } from "@bufbuild/protobuf";
import {
  type CallOptions,
  type Client,
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { isPeerAway } from "../runtime/peer-away.ts";
import { traceOutgoingCalls } from "./call-spans.ts";
import { forwardRequestId } from "./interceptors.ts";
import { createPatientAgent } from "./patient-agent.ts";
import { defaultMessageLimits, type MessageLimits, type RegisterRoutes } from "./registered-method.ts";
import { only } from "./request/request-format.ts";
import { createDirectTransport, type RequestParts } from "./transport/direct-transport.ts";
import { createInProcessTransport } from "./transport/in-process-transport.ts";

interface LocalOptions {
  /** Applied inside of ours: identity. */
  interceptors?: readonly Interceptor[];
  /** The deadline of calls that name none, milliseconds. */
  defaultTimeoutMs?: number;
}

interface RemoteOptions extends LocalOptions {
  /** Such as `http://localhost:8103`. */
  baseUrl: string;
  /** Must not exceed the server's; defaults to 1 MiB a message each way. */
  limits?: MessageLimits;
  /**
   * A field of bytes that streams give as it arrives, in pieces of any size, a message for each; of messages that have
   * nothing else.
   */
  piecewiseField?: DescField | undefined;
  /** Requests of streams that are sent in parts. */
  requestParts?: RequestParts | undefined;
}

const shortCallTimeoutMs = 5000;

/**
 * A transport to another process, with kept connections, no compression and a deadline on every call. A call is made once;
 * patient-agent.ts says what is tried again.
 */
export function createRemoteTransport(options: RemoteOptions): Transport {
  const { limits = defaultMessageLimits, ...others } = options;
  return createDirectTransport({
    ...others,
    ...callingOptions(options),
    limits,
    dispatcher: createPatientAgent(),
  });
}

/** A transport to handlers in this process: same interceptors, errors and deadlines, no socket, no limits. */
export function createLocalTransport(routes: RegisterRoutes, options: LocalOptions = {}): Transport {
  return createInProcessTransport(routes, callingOptions(options));
}

function callingOptions({ interceptors = [], defaultTimeoutMs = shortCallTimeoutMs }: LocalOptions) {
  return { interceptors: [forwardRequestId, traceOutgoingCalls, ...interceptors], defaultTimeoutMs };
}

/**
 * A client of a service; throws DomainError only, without the address of a process that could not be reached. Leaving
 * a stream early does not cancel its call: see consumeStream.
 */
export function createRpcClient<S extends DescService>(service: S, transport: Transport): Client<S> {
  const client = createClient(service, transport) as Record<string, UnaryCall>;
  const calls = service.methods.map((method) => {
    const call = client[method.localName];
    if (method.methodKind === "server_streaming")
      return [method.localName, streamingCall(method as DescMethodServerStreaming, transport)];
    return [method.localName, method.methodKind === "unary" && call ? withSafeErrors(call) : call];
  });
  return Object.fromEntries(calls);
}

type UnaryCall = (request: unknown, options?: CallOptions) => Promise<unknown>;

/** Here, and not in an interceptor: Connect wraps what interceptors throw. */
function withSafeErrors(call: UnaryCall): UnaryCall {
  return (request, options) => call(request, options).catch(rethrowSafely);
}

/** What the library's client does with two generators, which would cost each message several promises. */
function streamingCall(method: DescMethodServerStreaming, transport: Transport) {
  return (request: Record<string, unknown>, options: CallOptions = {}): AsyncIterable<unknown> => {
    const { signal, timeoutMs, headers, contextValues } = options;
    const opening = transport.stream(method, signal, timeoutMs, headers, only(request), contextValues);
    // Whoever asks for the first message gets the error.
    opening.catch(() => undefined);
    let messages: AsyncIterator<unknown> | undefined;
    const first = async () => {
      const answer = await opening;
      options.onHeader?.(answer.header);
      messages = answer.message[Symbol.asyncIterator]();
      return messages.next();
    };
    const passed = async (step: IteratorResult<unknown>) => {
      if (step.done) options.onTrailer?.((await opening).trailer);
      return step;
    };
    const next = () => (messages?.next() ?? first()).then(options.onTrailer && passed, rethrowSafely);
    return { [Symbol.asyncIterator]: () => ({ next }) };
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
