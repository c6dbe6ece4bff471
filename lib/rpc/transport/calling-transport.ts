import { create, type DescMessage, type DescMethod, type Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { createMethodUrl, requestHeader } from "../wire/connect-protocol.ts";
import { CallBounds } from "./call-bounds.ts";

/** A call as interceptors see it. */
export type CallRequest = UnaryRequest | StreamRequest;
/** Its answer as interceptors see it. */
export type CallResponse = UnaryResponse | StreamResponse;

/**
 * Carries a call to its service and gives the answer. Of a stream it also ends the bounds, when nothing is open any more,
 * and its messages fail with a ConnectError.
 */
export type Carry = (request: CallRequest, bounds: CallBounds) => Promise<CallResponse>;

/** What holds for all calls of a transport. */
export interface CallingOptions {
  readonly baseUrl: string;
  /** The first is the outermost. */
  readonly interceptors: readonly Interceptor[];
  /** The deadline of calls that name none, milliseconds. */
  readonly defaultTimeoutMs: number;
}

/**
 * A transport of calls with one request message: it gives each its bounds and headers and applies the interceptors; `carry`
 * does the rest.
 */
export function createCallingTransport(options: CallingOptions, carry: Carry): Transport {
  const innermostFirst = options.interceptors.toReversed();
  const call = async (method: DescMethod, message: unknown, asked: Asked): Promise<CallResponse> => {
    const timeoutMs = timeoutOf(asked.timeoutMs, options.defaultTimeoutMs);
    const bounds = new CallBounds(asked.signal, timeoutMs);
    let next = (request: CallRequest): Promise<CallResponse> =>
      bounds.cut === undefined ? carry(request, bounds) : Promise.reject(bounds.cut.error);
    for (const interceptor of innermostFirst) next = interceptor(next);
    try {
      const response = await next({
        stream: method.methodKind !== "unary",
        service: method.parent,
        method,
        requestMethod: "POST",
        url: createMethodUrl(options.baseUrl, method),
        header: requestHeader(method.methodKind, true, timeoutMs, asked.header, true),
        contextValues: asked.contextValues ?? createContextValues(),
        message,
        get signal() {
          return bounds.signal;
        },
      } as CallRequest);
      if (!response.stream) bounds.end();
      return response;
    } catch (thrown) {
      throw bounds.failWith(thrown);
    }
  };
  const transport: UntypedTransport = {
    unary: (method, signal, timeoutMs, header, message, contextValues) =>
      call(method, create(method.input, message), { signal, timeoutMs, header, contextValues }),
    stream: (method, signal, timeoutMs, header, messages, contextValues) =>
      call(method, new Messages(method.input, messages), { signal, timeoutMs, header, contextValues }),
  };
  return transport as Transport;
}

type HeadersInit = ConstructorParameters<typeof Headers>[0];

interface Asked {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
  readonly header: HeadersInit;
  readonly contextValues: ContextValues | undefined;
}

/** A transport as it is without the types of each method's messages. */
type Calls<M> = (
  method: DescMethod,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
  header: HeadersInit,
  message: M,
  contextValues?: ContextValues,
) => Promise<CallResponse>;

interface UntypedTransport {
  readonly unary: Calls<Message>;
  readonly stream: Calls<AsyncIterable<Message>>;
}

/** None where the call says so by a number that is not positive. */
function timeoutOf(askedMs: number | undefined, defaultMs: number): number | undefined {
  if (askedMs === undefined) return defaultMs;
  return askedMs <= 0 ? undefined : askedMs;
}

/** What a client gives, as whole messages. */
class Messages implements AsyncIterable<Message> {
  readonly #desc: DescMessage;
  readonly #given: AsyncIterable<Message>;

  constructor(desc: DescMessage, given: AsyncIterable<Message>) {
    this.#desc = desc;
    this.#given = given;
  }

  [Symbol.asyncIterator](): AsyncIterator<Message> {
    const given = this.#given[Symbol.asyncIterator]();
    return {
      next: async () => {
        const result = await given.next();
        return result.done ? result : { done: false, value: create(this.#desc, result.value) };
      },
    };
  }
}

/** The one message of a request; throws ConnectError where it has another number of them. */
export async function onlyMessageOf({ method, message }: CallRequest): Promise<Message> {
  if (method.methodKind === "unary") return message as Message;
  if (method.methodKind !== "server_streaming") {
    throw new ConnectError(`${method.name} takes a stream of requests`, Code.Unimplemented);
  }
  const messages = (message as AsyncIterable<Message>)[Symbol.asyncIterator]();
  const first = await messages.next();
  if (first.done) throw new ConnectError("protocol error: missing input message", Code.Unimplemented);
  if (!(await messages.next()).done) {
    throw new ConnectError("protocol error: received extra input message", Code.Unimplemented);
  }
  return first.value;
}
