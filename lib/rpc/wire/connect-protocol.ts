/**
 * What the Connect protocol says besides envelopes: names of headers, content types, codes, errors and the end of a stream
 * as JSON. All of it is the library's own, so that details and metadata are what it makes of them. It marks these exports
 * as private, which the exact version in package.json makes safe: they are imported here and nowhere else.
 *
 * Source: https://connectrpc.com/docs/protocol/
 */
import type { ConnectError } from "@connectrpc/connect";
import {
  createEndStreamSerialization,
  type EndStreamResponse,
  endStreamToJson,
} from "@connectrpc/connect/protocol-connect";

export { createMethodUrl, mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
export {
  codeFromString,
  codeToHttpStatus,
  codeToString,
  contentTypeStreamProto,
  contentTypeUnaryJson,
  contentTypeUnaryProto,
  endStreamFlag,
  errorFromJson,
  errorFromJsonBytes,
  errorToJson,
  errorToJsonBytes,
  headerContentType,
  headerStreamAcceptEncoding,
  headerStreamEncoding,
  headerTimeout,
  headerUnaryAcceptEncoding,
  headerUnaryContentLength,
  headerUnaryEncoding,
  parseTimeout,
  requestHeader,
  trailerDemux,
  validateResponseWithCompression,
} from "@connectrpc/connect/protocol-connect";

/** The message of the last envelope of a stream. What its error carries as metadata is added to the trailers. */
export function endStreamToJsonBytes(trailer: Headers, error?: ConnectError): Uint8Array {
  return Buffer.from(JSON.stringify(endStreamToJson(trailer, error, undefined)));
}

const endStream = createEndStreamSerialization(undefined);
const emptyObject = Buffer.from("{}");

/** What the message of the last envelope of a stream says; undefined where that is nothing. Throws ConnectError. */
export function endStreamFromJsonBytes(json: Uint8Array): EndStreamResponse | undefined {
  // The library makes an error before it knows of any.
  return emptyObject.equals(json) ? undefined : endStream.parse(json);
}
