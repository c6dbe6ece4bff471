import { randomBytes } from "node:crypto";
import { type DescMessage, fromBinary, fromJsonString, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { BodyBytes } from "../../limits/body-bytes.ts";
import { JsonBounds } from "../../limits/json-bounds.ts";
import { LongStrings, longStringBytes } from "../../limits/long-strings.ts";
import { WireScanner } from "../../limits/wire-bounds.ts";
import { DomainError } from "../../runtime/domain-error.ts";
import type { RequestFormat } from "./request-format.ts";
import { maxDepth, type RequestLimits } from "./request-limits.ts";
import { restoreStrings } from "./restore-strings.ts";

/** What requests may be compressed with, and answers on demand. */
export const compressions = [compressionGzip, compressionBrotli] as const;

/** Of what stands before a message in its envelope. */
export const envelopeHeadBytes = 5;
const compressedFlag = 0b01;
const maxKeyBytes = 1024;
/** Of what a decoder says, which may quote the message. */
const maxFaultCharacters = 200;

/** What stands in a body around its message. */
interface Envelope {
  readonly isCompressed: boolean;
  readonly message: Uint8Array;
}

/**
 * How many bytes a body will have at most, of which so many have come, these the first of them. Throws ConnectError as
 * soon as they show that it is too large or not one message.
 */
export function checkBody(length: number, head: Uint8Array, format: RequestFormat, maxBytes: number): number {
  const mostBytes = maxBytes + (format.isEnveloped ? envelopeHeadBytes : 0);
  if (length > mostBytes) throw tooLarge(maxBytes);
  if (!format.isEnveloped || head.length < envelopeHeadBytes) return mostBytes;
  const announced = messageBytesOf(head);
  if (announced > maxBytes) throw tooLarge(maxBytes);
  if (((head[0] ?? 0) & ~compressedFlag) !== 0) throw malformed("is no message");
  if (length > envelopeHeadBytes + announced) throw malformed("has more than one message");
  return envelopeHeadBytes + announced;
}

/** What is in a body that is all there. Throws ConnectError. */
export function openEnvelope(body: Uint8Array, { isEnveloped, encoding }: RequestFormat): Envelope {
  if (!isEnveloped) return { isCompressed: encoding !== undefined && body.length > 0, message: body };
  if (body.length === 0) throw new ConnectError("the message is missing", Code.Unimplemented);
  if (body.length < envelopeHeadBytes || body.length < envelopeHeadBytes + messageBytesOf(body)) {
    throw malformed("ends amid a message");
  }
  const isCompressed = ((body[0] ?? 0) & compressedFlag) !== 0;
  if (isCompressed && encoding === undefined) throw malformed("is compressed, but not said how");
  return { isCompressed, message: body.subarray(envelopeHeadBytes) };
}

function messageBytesOf(head: Uint8Array): number {
  return new DataView(head.buffer, head.byteOffset).getUint32(1);
}

/** Inflates a message, outside of the event loop, to so many bytes at most. Throws ConnectError. */
export async function inflate(
  message: Uint8Array,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  const compression = compressions.find(({ name }) => name === encoding);
  if (compression === undefined) throw malformed("is compressed in an unknown way");
  try {
    return await compression.decompress(message, maxBytes);
  } catch (thrown) {
    if (thrown instanceof ConnectError && thrown.code === Code.ResourceExhausted) throw tooLarge(maxBytes);
    throw malformed("can't be decompressed");
  }
}

/** Counts what is in messages, then decodes them. */
export class MessageDecoder {
  readonly #scanner = new WireScanner();

  /** Throws ConnectError. */
  async decode(
    schema: DescMessage,
    message: Uint8Array,
    { isJson }: RequestFormat,
    limits: RequestLimits,
  ): Promise<Message> {
    try {
      return isJson ? await decodeJson(schema, message, limits) : this.#decodeBinary(schema, message, limits);
    } catch (thrown) {
      if (thrown instanceof ConnectError) throw thrown;
      if (thrown instanceof DomainError) throw thrown.toConnectError();
      throw malformed(
        thrown instanceof Error ? thrown.message.slice(0, maxFaultCharacters) : "can't be decoded",
      );
    }
  }

  #decodeBinary(schema: DescMessage, message: Uint8Array, limits: RequestLimits): Message {
    const { maxElements, maxTextBytes } = limits;
    const fault = this.#scanner.findFault(schema, message, { maxElements, maxTextBytes, maxDepth });
    if (fault !== undefined) throw malformed(fault);
    return fromBinary(schema, message);
  }
}

async function decodeJson(schema: DescMessage, message: Uint8Array, limits: RequestLimits): Promise<Message> {
  const { maxElements, maxTextBytes } = limits;
  const bounds = new JsonBounds({ maxElements, maxDepth, maxKeyBytes, longStringBytes });
  bounds.take(message);
  const body = new BodyBytes();
  body.append(message);
  // Their names are base64, for a field of bytes.
  const strings = new LongStrings(body, bounds.longStrings, randomBytes(24).toString("base64"));
  const json = new TextDecoder().decode(strings.textWithout(maxTextBytes));
  const decoded = fromJsonString(schema, json, { ignoreUnknownFields: true });
  if (bounds.longStrings.length > 0) await restoreStrings(schema, decoded, strings, maxTextBytes);
  return decoded;
}

/** A message above its limit. Its code is the one of limits of the wire, which clients know from stock servers. */
export function tooLarge(maxBytes: number): ConnectError {
  const error = new ConnectError(`the message is larger than ${maxBytes} bytes`, Code.ResourceExhausted);
  error.details.push({ desc: ErrorDetailSchema, value: { reason: ErrorReason.BODY_TOO_LARGE } });
  return error;
}

function malformed(message: string): ConnectError {
  return DomainError.invalid([{ path: "", message }]).toConnectError();
}
