/**
 * Calls of services in other processes: the Connect protocol in binary, uncompressed, over HTTP/1.1, as the stock transport
 * speaks it, read and written directly (wire/). What a call costs is mostly undici's.
 */
import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { Dispatcher } from "undici";
import type { MessageLimits } from "../registered-method.ts";
import { checkWriteLimit, encodeMessage } from "../wire/answer-encoder.ts";
import { createMethodUrl } from "../wire/connect-protocol.ts";
import { encodeEnvelope, envelopeHeadBytes } from "../wire/envelope.ts";
import {
  type CallingOptions,
  type CallRequest,
  createCallingTransport,
  onlyMessageOf,
} from "./calling-transport.ts";
import { StreamExchange, UnaryExchange } from "./exchange.ts";

/** How the requests of one type come apart. */
export interface RequestParts {
  readonly type: DescMessage;
  /**
   * The message without its large parts, and these, each as it stands in the encoding of the whole: messages may be encoded
   * in parts, which put together are the whole.
   */
  split(message: Message): { readonly rest: Message; readonly parts: readonly Uint8Array[] };
}

/** What a direct transport is made of. */
export interface DirectTransportOptions extends CallingOptions {
  readonly dispatcher: Dispatcher;
  readonly limits: MessageLimits;
  readonly piecewiseField?: DescField | undefined;
  readonly requestParts?: RequestParts | undefined;
}

/** A transport to the process at the base URL. */
export function createDirectTransport(options: DirectTransportOptions): Transport {
  const { dispatcher, piecewiseField, limits } = options;
  const { origin, pathname } = new URL(options.baseUrl);
  return createCallingTransport(options, async (request, bounds) => {
    const { pieces, bytes } = encodeRequest(request, await onlyMessageOf(request), options);
    if (bounds.cut !== undefined) throw bounds.cut.error;
    const headers = ["content-length", String(bytes)];
    request.header.forEach((value, name) => {
      headers.push(name, value);
    });
    const path = createMethodUrl(pathname, request.method);
    const dispatched = { origin, path, method: "POST", headers, body: toDispatchBody(pieces) };
    if (!request.stream) {
      return new UnaryExchange(request, bounds, limits.readMaxBytes).by(dispatcher, dispatched);
    }
    const hasField = piecewiseField?.parent.typeName === request.method.output.typeName;
    const field = hasField ? piecewiseField : undefined;
    const exchange = new StreamExchange(request, bounds, { maxMessageBytes: limits.readMaxBytes, field });
    return exchange.by(dispatcher, dispatched);
  });
}

interface EncodedRequest {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
}

/** Throws ConnectError. */
function encodeRequest(
  { stream, method }: CallRequest,
  message: Message,
  { limits: { writeMaxBytes }, requestParts }: DirectTransportOptions,
): EncodedRequest {
  const isSplit = stream && requestParts?.type.typeName === method.input.typeName;
  const { rest, parts } = isSplit ? requestParts.split(message) : { rest: message, parts: [] };
  const encoded = encodeMessage(method.input, rest);
  const messageBytes = parts.reduce((sum, { length }) => sum + length, encoded.length);
  checkWriteLimit(messageBytes, writeMaxBytes);
  if (!stream) return { pieces: [encoded], bytes: messageBytes };
  const envelope = encodeEnvelope(0, encoded);
  envelope.writeUInt32BE(messageBytes, 1);
  return { pieces: [envelope, ...parts], bytes: envelopeHeadBytes + messageBytes };
}

/** One piece goes out at once, more of them one after another, uncopied; undici takes any iterable, its types name some. */
function toDispatchBody(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces;
  return (pieces.length === 1 ? first : pieces) as Uint8Array;
}
