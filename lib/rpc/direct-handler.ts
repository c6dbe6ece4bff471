/**
 * Serves what our own processes speak without the library's handlers, which make chains of iterables for every call: the
 * Connect protocol in binary, not compressed, unary by POST and server streams. What it answers is byte for byte what
 * the library answers (direct-handler.test.ts); everything else is left to that.
 *
 * 1. Interceptors run before a byte of the body is read, by the same reader and within the same limits as there.
 * 2. A message that is nothing but a field of bytes is written as a head and those bytes, which are not copied: whoever
 *    gives them must not write to them again.
 * 3. The next message is asked for when the connection can take more. A caller who leaves is noticed at once by the
 *    call's signal; the messages are ended when the next one comes.
 * 4. Node corks what is written in one tick by itself. Corking here would hold back the next answer of the connection.
 */
import type { Writable } from "node:stream";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues } from "@connectrpc/connect";
import type { NodeRequest, NodeResponse } from "./port/port-listener.ts";
import type { RegisteredMethod } from "./registered-method.ts";
import type { RequestFormat } from "./request/request-format.ts";
import type { RequestReader, UnreadRequest } from "./request/request-reader.ts";
import { leave, type ReadMessage, ServerCall } from "./server-call.ts";
import { AnswerEncoder } from "./wire/answer-encoder.ts";
import {
  codeToHttpStatus,
  contentTypeStreamProto,
  contentTypeUnaryJson,
  contentTypeUnaryProto,
  endStreamFlag,
  endStreamToJsonBytes,
  errorToJsonBytes,
  headerContentType,
  headerStreamAcceptEncoding,
  headerStreamEncoding,
  headerTimeout,
  headerUnaryAcceptEncoding,
  headerUnaryContentLength,
  headerUnaryEncoding,
  mergeNonProtocolHeaders,
  parseTimeout,
} from "./wire/connect-protocol.ts";
import { encodeEnvelope } from "./wire/envelope.ts";

/** What of a request has been looked at before it is handled. */
export interface RequestIdentity {
  readonly url: string;
  readonly values: ContextValues;
}

/** Answers requests of one method. */
export interface DirectHandler {
  /** Whether a request to this method is one of those that are answered here. */
  takes(request: NodeRequest): boolean;
  /** Rejects when the answer can't be written. */
  handle(request: NodeRequest, response: NodeResponse, identity: RequestIdentity): Promise<void>;
}

interface DirectOptions {
  readonly reader: RequestReader;
  /** Longest deadline that a caller may ask for, milliseconds. */
  readonly maxTimeoutMs: number;
}

const protocolName = "connect";

/** A handler of a method; undefined for a kind of method that the library serves alone. */
export function createDirectHandler(
  method: RegisteredMethod,
  { reader, maxTimeoutMs }: DirectOptions,
): DirectHandler | undefined {
  const { spec } = method;
  if (spec.kind !== "unary" && spec.kind !== "server_streaming") return undefined;
  const isStream = spec.kind === "server_streaming";
  const contentType = isStream ? contentTypeStreamProto : contentTypeUnaryProto;
  const limits = reader.limitsOf(spec.method, method.readMaxBytes);
  const encoder = new AnswerEncoder(spec.method.output, method.writeMaxBytes);
  const format: RequestFormat = {
    isEnveloped: isStream,
    isJson: false,
    encoding: undefined,
    query: undefined,
  };
  return {
    takes: (request) => isPlain(request, contentType, isStream),
    handle(request, response, { url, values }) {
      const header = headersOf(request);
      const { timeoutMs: askedMs, error } = parseTimeout(header.get(headerTimeout), maxTimeoutMs);
      // One that is refused would be too long for a timer.
      const timeoutMs = error === undefined ? askedMs : undefined;
      const head = { url, requestMethod: "POST", protocolName, header, timeoutMs, values };
      const call = new ServerCall(method, head);
      call.header.set(headerContentType, contentType);
      abortWhenLeft(call, request, response);
      const unread: UnreadRequest = { request, response, format };
      const read: ReadMessage = async (authorized) => {
        if (error !== undefined) throw error;
        return await reader.read(unread, authorized, limits); // 1.
      };
      if (isStream) return new StreamAnswer(call, response, encoder).write(read);
      return answerUnary(call, response, encoder, error === undefined ? read : error);
    },
  };
}

const encodingNames = {
  unary: [headerUnaryEncoding, headerUnaryAcceptEncoding].map((name) => name.toLowerCase()),
  stream: [headerStreamEncoding, headerStreamAcceptEncoding].map((name) => name.toLowerCase()),
} as const;

/** In binary, with no word of compression. */
function isPlain({ method, headers }: NodeRequest, contentType: string, isStream: boolean): boolean {
  if (method !== "POST" || headers["content-type"] !== contentType) return false;
  return encodingNames[isStream ? "stream" : "unary"].every((name) => headers[name] === undefined);
}

/** As the library makes them of what Node has read. */
function headersOf({ headers }: NodeRequest): Headers {
  const made = new Headers();
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":")) continue;
    if (typeof value === "string") made.append(name, value);
    else for (const each of value) made.append(name, each);
  }
  return made;
}

function abortWhenLeft(call: ServerCall, request: NodeRequest, response: NodeResponse): void {
  const left = () => {
    if (!call.signal.aborted) call.abort(new ConnectError("the caller has left", Code.Canceled));
  };
  response.once("close", left);
  // Without a listener it would be thrown; the response is closed then, too.
  request.once("error", left);
}

function asConnectError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  return new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
}

/** `read` is an error where the head of the request is at fault: nobody is asked then. */
async function answerUnary(
  call: ServerCall,
  response: NodeResponse,
  encoder: AnswerEncoder,
  read: ReadMessage | ConnectError,
): Promise<void> {
  let status = 200;
  let body: Uint8Array;
  try {
    if (read instanceof ConnectError) throw read;
    body = encoder.encode(await call.unary(read));
    call.end();
  } catch (thrown) {
    call.abort(thrown);
    const error = asConnectError(thrown);
    status = codeToHttpStatus(error.code);
    call.header.set(headerContentType, contentTypeUnaryJson);
    if (!error.isWireError) mergeNonProtocolHeaders(call.header, error.metadata);
    body = errorToJsonBytes(error, undefined);
  }
  call.trailer.forEach((value, name) => {
    call.header.append(`trailer-${name}`, value);
  });
  call.header.set(headerUnaryContentLength, String(body.byteLength));
  writeHead(response, status, call.header);
  response.end(body);
}

function writeHead(response: NodeResponse, status: number, header: Headers): void {
  response.statusCode = status;
  header.forEach((value, name) => {
    if (name !== "set-cookie") response.setHeader(name, value);
  });
  const cookies = header.getSetCookie();
  if (cookies.length > 0) response.setHeader("set-cookie", cookies);
}

/** The answer of a server stream on its way out. */
class StreamAnswer {
  readonly #call: ServerCall;
  readonly #response: NodeResponse;
  readonly #encoder: AnswerEncoder;
  #hasBegun = false;
  #isClosed = false;
  /** Goes on when the connection can take more, or is gone. */
  #resume: (() => void) | undefined;

  constructor(call: ServerCall, response: NodeResponse, encoder: AnswerEncoder) {
    this.#call = call;
    this.#response = response;
    this.#encoder = encoder;
    response.once("close", () => {
      this.#isClosed = true;
      this.#resume?.();
    });
  }

  async write(read: ReadMessage): Promise<void> {
    let error: ConnectError | undefined;
    try {
      await this.#writeMessages(await this.#call.stream(read));
      this.#call.end();
    } catch (thrown) {
      this.#call.abort(thrown);
      error = asConnectError(thrown);
    }
    if (this.#isClosed) return;
    this.#begin();
    this.#response.end(encodeEnvelope(endStreamFlag, endStreamToJsonBytes(this.#call.trailer, error)));
  }

  async #writeMessages(messages: AsyncIterator<Message>): Promise<void> {
    for (;;) {
      const step = await messages.next();
      if (step.done) return;
      try {
        const isTaken = this.#writeMessage(step.value);
        if (!isTaken) await this.#drained(); // 3.
      } catch (thrown) {
        this.#call.end();
        await messages.return?.();
        throw thrown;
      }
      if (this.#isClosed) {
        await leave(messages, this.#call.signal.reason);
        return;
      }
    }
  }

  /** False when the connection has enough for now. */
  #writeMessage(message: Message): boolean {
    const parts = this.#encoder.encodeEnvelope(message);
    if (this.#isClosed) return true;
    this.#begin();
    let isTaken = true;
    for (const part of parts) isTaken = (this.#response as Writable).write(part); // 2.
    return isTaken;
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    writeHead(this.#response, 200, this.#call.header);
  }

  #drained(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#resume === undefined) this.#response.on("drain", () => this.#resume?.());
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }
}
