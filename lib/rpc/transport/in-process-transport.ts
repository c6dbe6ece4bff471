/**
 * Calls of services in this process: the implementation is called, with the same interceptors on both sides, and nothing is
 * put on a wire.
 *
 * 1. Each side has messages of its own.
 * 2. The answer, headers and trailers, or the error, is what a caller over the wire would get. What only our log may say
 *    stays behind.
 * 3. A call that is cut off is over for its caller at once. Its handler learns of it by its signal, and a stream by its
 *    end, too; what still comes of it is dropped.
 */
import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextValues,
  type StreamRequest,
  type StreamResponse,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { type RegisteredMethod, type RegisterRoutes, registeredMethods } from "../registered-method.ts";
import { leave, type ReadMessage, ServerCall } from "../server-call.ts";
import { errorFromJson, errorToJson, mergeNonProtocolHeaders } from "../wire/connect-protocol.ts";
import type { CallBounds, Cut } from "./call-bounds.ts";
import { type CallingOptions, createCallingTransport, onlyMessageOf } from "./calling-transport.ts";
import { ownCopy } from "./own-copy.ts";

const baseUrl = "https://in-process";
/** What is on no wire has no limits there. */
const noLimits = { readMaxBytes: Number.POSITIVE_INFINITY, writeMaxBytes: Number.POSITIVE_INFINITY };
const ignore = () => undefined;

/** A transport to the RPCs that `routes` registers. */
export function createInProcessTransport(
  routes: RegisterRoutes,
  options: Omit<CallingOptions, "baseUrl">,
): Transport {
  const methods = new Map(registeredMethods(routes, noLimits).map((method) => [method.spec.method, method]));
  return createCallingTransport({ ...options, baseUrl }, async (request, bounds) => {
    const method = methods.get(request.method);
    if (method === undefined) throw new ConnectError(`${request.url} is not there`, Code.Unimplemented);
    const message = ownCopy(await onlyMessageOf(request)); // 1.
    if (bounds.cut !== undefined) throw bounds.cut.error;
    const call = beginCall(method, request, bounds);
    const read = () => Promise.resolve(message);
    return request.stream
      ? callStream(call, { request, bounds, read })
      : callUnary(call, { request, bounds, read });
  });
}

function beginCall(
  method: RegisteredMethod,
  { url, requestMethod, header }: UnaryRequest | StreamRequest,
  { timeoutMs }: CallBounds,
): ServerCall {
  return new ServerCall(method, {
    url,
    requestMethod,
    protocolName: "connect",
    header,
    timeoutMs,
    values: createContextValues(),
  });
}

interface Asked<R> {
  readonly request: R;
  readonly bounds: CallBounds;
  readonly read: ReadMessage;
}

function callUnary(call: ServerCall, { request, bounds, read }: Asked<UnaryRequest>): Promise<UnaryResponse> {
  return new Promise((resolve, reject) => {
    bounds.whenCut(({ error, reason }) => {
      reject(error); // 3.
      call.abort(reason);
    });
    call.unary(read).then(
      (message) => {
        call.end();
        const { service, method } = request;
        const { header, trailer } = call;
        resolve({ stream: false, service, method, header, trailer, message: ownCopy(message) });
      },
      (thrown: unknown) => {
        call.abort(thrown);
        reject(asOverTheWire(thrown, call));
      },
    );
  });
}

async function callStream(
  call: ServerCall,
  { request, bounds, read }: Asked<StreamRequest>,
): Promise<StreamResponse> {
  const messages = new InProcessMessages(call, bounds);
  await messages.open(read);
  const { service, method } = request;
  const { header, trailer } = call;
  return { stream: true, service, method, header, trailer, message: messages };
}

type Step = IteratorResult<Message, undefined>;

/** The messages of a stream, each made when it is asked for. */
class InProcessMessages implements AsyncIterableIterator<Message, undefined> {
  readonly #call: ServerCall;
  readonly #bounds: CallBounds;
  #source: AsyncIterator<Message> | undefined;
  #first: Promise<Step> | undefined;
  /** Of the step that runs. */
  #reject: (error: ConnectError) => void = ignore;

  constructor(call: ServerCall, bounds: CallBounds) {
    this.#call = call;
    this.#bounds = bounds;
    bounds.whenCut((cut) => this.#cutOff(cut));
  }

  /** Resolves when the first message is there, or whatever came instead; the headers are final then. */
  async open(read: ReadMessage): Promise<void> {
    this.#first = this.#take(
      this.#call.stream(read).then((source) => {
        this.#source = source;
        return source.next();
      }),
    );
    await this.#first.catch(ignore);
  }

  next(): Promise<Step> {
    const first = this.#first;
    this.#first = undefined;
    return first ?? this.#take(this.#source?.next() ?? Promise.resolve(done));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(step: Promise<IteratorResult<Message>>): Promise<Step> {
    return new Promise((resolve, reject) => {
      if (this.#bounds.cut !== undefined) reject(this.#bounds.cut.error);
      this.#reject = reject;
      step.then(
        (result) => {
          if (!result.done) return resolve({ done: false, value: ownCopy(result.value) }); // 1.
          this.#bounds.end();
          this.#call.end();
          resolve(done);
        },
        (thrown: unknown) => {
          this.#bounds.end();
          this.#call.abort(thrown);
          reject(asOverTheWire(thrown, this.#call));
        },
      );
    });
  }

  #cutOff({ error, reason }: Cut): void {
    this.#reject(error); // 3.
    this.#call.abort(reason);
    if (this.#source !== undefined) void leave(this.#source, reason);
  }
}

const done: IteratorResult<never, undefined> = { done: true, value: undefined };

/** What a caller over the wire would get in place of what was thrown. */
function asOverTheWire(thrown: unknown, { header, trailer }: ServerCall): ConnectError {
  const error = thrown instanceof ConnectError ? thrown : new ConnectError("internal error", Code.Internal); // 2.
  const metadata = new Headers(header);
  trailer.forEach((value, name) => {
    metadata.append(name, value);
  });
  if (!error.isWireError) mergeNonProtocolHeaders(metadata, error.metadata);
  return errorFromJson(errorToJson(error, undefined), metadata, error);
}
