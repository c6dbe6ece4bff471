/**
 * The HTTP exchange of one call, as undici tells of it: no stream and no promise in between.
 *
 * 1. What a method here throws ends the exchange and closes its connection: undici catches it and hands it to
 *    onResponseError. A cut does the same.
 * 2. Only a stated end is an end: a unary answer says by a length or in chunks where it is, a stream by its last envelope,
 *    and the body must end there, too.
 * 3. Limits are looked at before anything is kept.
 */
import { create, type DescField, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import {
  appendHeaders,
  Code,
  ConnectError,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import type { Dispatcher } from "undici";
import {
  contentTypeStreamProto,
  contentTypeUnaryProto,
  endStreamFromJsonBytes,
  errorFromJsonBytes,
  headerContentType,
  headerStreamEncoding,
  headerUnaryContentLength,
  headerUnaryEncoding,
  trailerDemux,
  validateResponseWithCompression,
} from "../wire/connect-protocol.ts";
import { EnvelopeParser, type EnvelopeParserOptions, type EnvelopeSink } from "../wire/envelope-parser.ts";
import type { CallBounds } from "./call-bounds.ts";
import { MessageQueue } from "./message-queue.ts";

type Controller = Dispatcher.DispatchController;
type RawHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The part that both kinds have in common. */
abstract class Exchange<R> implements Dispatcher.DispatchHandler {
  protected readonly bounds: CallBounds;
  /** Settles with the answer; of a stream when it has begun. */
  protected readonly answer = Promise.withResolvers<R>();
  #controller: Controller | undefined;

  constructor(bounds: CallBounds) {
    this.bounds = bounds;
  }

  /** Makes the call. Rejects with ConnectError. */
  by(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions): Promise<R> {
    dispatcher.dispatch(request, this);
    this.bounds.whenCut(({ error }) => {
      this.fail(error);
      this.#controller?.abort(error);
    });
    return this.answer.promise;
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.bounds.cut !== undefined) controller.abort(this.bounds.cut.error);
  }

  onResponseError(_controller: Controller | null, thrown: Error): void {
    this.fail(thrown instanceof ConnectError ? thrown : this.#brokenConnection(thrown));
  }

  /** The first failure counts. */
  protected fail(error: ConnectError): void {
    this.answer.reject(error);
  }

  #brokenConnection(thrown: Error): ConnectError {
    const nothingSent = this.#controller === undefined;
    const code = nothingSent ? Code.Unavailable : Code.Aborted;
    return new ConnectError(thrown.message, code, undefined, undefined, thrown);
  }
}

/** An exchange whose answer is one message of at most so many bytes. */
export class UnaryExchange extends Exchange<UnaryResponse> {
  readonly #request: UnaryRequest;
  readonly #maxBytes: number;
  #raw: RawHeaders = {};
  /** The answer is an error; of this kind if it does not say more. */
  #error: ConnectError | undefined;
  #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(request: UnaryRequest, bounds: CallBounds, maxBytes: number) {
    super(bounds);
    this.#request = request;
    this.#maxBytes = maxBytes;
  }

  onResponseStart(_controller: Controller, status: number, raw: RawHeaders): void {
    if (status < 200) return;
    this.#raw = raw;
    if (!isPlain(status, raw, contentTypeUnaryProto, headerUnaryEncoding)) {
      this.#error = validateResponseWithCompression("unary", [], true, status, toHeaders(raw)).unaryError;
    }
    const announced = raw[headerUnaryContentLength.toLowerCase()];
    if (announced !== undefined) this.#checkSize(Number(announced), ` ${announced}`);
    else if (raw["transfer-encoding"] === undefined && this.#error === undefined) {
      throw new ConnectError("the answer has neither a length nor chunks", Code.Unavailable); // 2.
    }
  }

  onResponseData(_controller: Controller, chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    this.#checkSize(this.#bytes, "");
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const [first = new Uint8Array(0)] = this.#chunks;
    const body = this.#chunks.length > 1 ? Buffer.concat(this.#chunks, this.#bytes) : first;
    const [raw, error] = [this.#raw, this.#error];
    if (error !== undefined)
      throw errorFromJsonBytes(body, appendHeaders(...trailerDemux(toHeaders(raw))), error);
    const { service, method } = this.#request;
    const message = decode(method.output, body);
    const demuxed = once(() => trailerDemux(toHeaders(raw)));
    this.answer.resolve({
      stream: false,
      service,
      method,
      message,
      // Hardly anybody asks for them, and they would be a good part of what a call costs.
      get header() {
        return demuxed()[0];
      },
      get trailer() {
        return demuxed()[1];
      },
    });
  }

  #checkSize(bytes: number, stated: string): void {
    if (bytes <= this.#maxBytes) return;
    const message = `message size${stated} is larger than configured readMaxBytes ${this.#maxBytes}`; // 3.
    throw new ConnectError(message, Code.ResourceExhausted);
  }
}

/** An exchange whose answer is a stream of messages. */
export class StreamExchange extends Exchange<StreamResponse> implements EnvelopeSink {
  readonly #request: StreamRequest;
  readonly #parser: EnvelopeParser;
  readonly #messageOf: (bytes: Uint8Array) => Message;
  readonly #trailer = new Headers();
  readonly #queue = new MessageQueue<Message>(() => this.#resume());
  #raw: RawHeaders = {};
  #hasEnd = false;
  #resume = (): void => undefined;

  /** Of the parser's field a message is made for each piece of its bytes. */
  constructor(request: StreamRequest, bounds: CallBounds, options: EnvelopeParserOptions) {
    super(bounds);
    this.#request = request;
    this.#parser = new EnvelopeParser(options, this);
    this.#messageOf = messagesOf(options.field, request.method.output);
  }

  onResponseStart(controller: Controller, status: number, raw: RawHeaders): void {
    if (status < 200) return;
    this.#raw = raw;
    if (!isPlain(status, raw, contentTypeStreamProto, headerStreamEncoding)) {
      validateResponseWithCompression("server_streaming", [], true, status, toHeaders(raw));
    }
    this.#resume = () => controller.resume();
    const { service, method } = this.#request;
    const header = once(() => toHeaders(raw));
    this.answer.resolve({
      stream: true,
      service,
      method,
      message: this.#queue,
      trailer: this.#trailer,
      get header() {
        return header();
      },
    });
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    this.#parser.push(asBytes(chunk));
    if (this.#queue.isFull) controller.pause();
  }

  onResponseEnd(): void {
    this.#parser.finish();
    if (!this.#hasEnd)
      throw new ConnectError("protocol error: missing EndStreamResponse", Code.InvalidArgument); // 2.
    this.bounds.end();
    this.#queue.end();
  }

  message(bytes: Uint8Array): void {
    this.#checkOpen("message after ");
    this.#queue.push(decode(this.#request.method.output, bytes), bytes.length);
  }

  piece(bytes: Uint8Array): void {
    this.#checkOpen("message after ");
    this.#queue.push(this.#messageOf(bytes), bytes.length);
  }

  end(json: Uint8Array): void {
    this.#checkOpen("");
    this.#hasEnd = true;
    const { error, metadata } = endStreamFromJsonBytes(json) ?? {};
    if (error !== undefined) {
      toHeaders(this.#raw).forEach((value, name) => {
        error.metadata.append(name, value);
      });
      this.#queue.fail(error);
    } else {
      metadata?.forEach((value, name) => {
        this.#trailer.set(name, value);
      });
    }
  }

  protected override fail(error: ConnectError): void {
    super.fail(error);
    if (this.bounds.cut === undefined) this.#queue.fail(error);
    else this.#queue.cutOff(error);
    this.bounds.end();
  }

  #checkOpen(what: string): void {
    if (!this.#hasEnd) return;
    throw new ConnectError(`protocol error: received extra ${what}EndStreamResponse`, Code.InvalidArgument);
  }
}

/** Whether an answer's head is what nearly all are; the library looks at the others. */
function isPlain(status: number, raw: RawHeaders, contentType: string, encodingName: string): boolean {
  const encoding = raw[encodingName.toLowerCase()];
  return status === 200 && raw[headerContentType.toLowerCase()] === contentType && encoding === undefined;
}

function toHeaders(raw: RawHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(raw)) {
    if (typeof value === "string") headers.append(name, value);
    else for (const each of value ?? []) headers.append(name, each);
  }
  return headers;
}

function once<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The same bytes, of the type that messages have; a Buffer is shown and compared in other ways. */
function asBytes({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The library's words. */
function decode(schema: DescMessage, bytes: Uint8Array): Message {
  try {
    return fromBinary(schema, asBytes(bytes));
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ConnectError(`parse binary: ${message}`, Code.Internal);
  }
}

/** Makes messages that have nothing but this field. */
function messagesOf(field: DescField | undefined, schema: DescMessage): (bytes: Uint8Array) => Message {
  if (field?.oneof === undefined) return (value) => create(schema, field && { [field.localName]: value });
  const { oneof, localName } = field;
  return (value) => create(schema, { [oneof.localName]: { case: localName, value } });
}
