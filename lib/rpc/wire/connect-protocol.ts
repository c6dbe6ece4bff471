/**
 * What the Connect protocol says besides envelopes: names of headers, content types, codes, errors and the end of a stream
 * as JSON. All of it is the library's own, so that details and metadata are what it makes of them. It marks these exports
 * as private, which the exact version in package.json makes safe: they are imported here and nowhere else.
 *
 * Source: https://connectrpc.com/docs/protocol/
 */
import type { ConnectError } from "@connectrpc/connect";

export { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";

import { endStreamToJson } from "@connectrpc/connect/protocol-connect";

export {
  codeFromHttpStatus,
  codeFromString,
  codeToHttpStatus,
  codeToString,
  contentTypeStreamProto,
  contentTypeUnaryJson,
  contentTypeUnaryProto,
  endStreamFlag,
  endStreamFromJson,
  errorFromJson,
  errorFromJsonBytes,
  errorToJsonBytes,
  headerContentType,
  headerProtocolVersion,
  headerStreamAcceptEncoding,
  headerStreamEncoding,
  headerTimeout,
  headerUnaryAcceptEncoding,
  headerUnaryContentLength,
  headerUnaryEncoding,
  headerUserAgent,
  parseTimeout,
  protocolVersion,
  trailerDemux,
  trailerMux,
  validateResponse,
} from "@connectrpc/connect/protocol-connect";

/** The message of the last envelope of a stream. What its error carries as metadata is added to the trailers. */
export function endStreamToJsonBytes(trailer: Headers, error?: ConnectError): Uint8Array {
  return Buffer.from(JSON.stringify(endStreamToJson(trailer, error, undefined)));
}
