import type { DescField } from "@bufbuild/protobuf";

/** Of what stands before a message in its envelope: flags, and how long it is. */
export const envelopeHeadBytes = 5;
/** In the flags: the message is compressed. */
export const compressedFlag = 0b01;

/** Fields up to this number have a tag of one byte. */
const maxFieldNumber = 15;
const wireTypeOfBytes = 2;
const varintBits = 7;

/** The tag of a field of bytes as it stands before its length; undefined where it takes more than a byte. */
export function bytesTagOf(field: DescField): number | undefined {
  return field.number > maxFieldNumber ? undefined : (field.number << 3) | wireTypeOfBytes;
}

/** How many bytes a length takes as a varint. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value >>> varintBits; rest > 0; rest >>>= varintBits) bytes += 1;
  return bytes;
}

/** How long a message is whose only field, of this many bytes, has a tag of one byte. */
export function fieldMessageBytes(fieldBytes: number): number {
  return 1 + varintBytes(fieldBytes) + fieldBytes;
}

/** A message in its envelope: a copy. */
export function encodeEnvelope(flags: number, message: Uint8Array): Buffer {
  const envelope = Buffer.allocUnsafe(envelopeHeadBytes + message.length);
  writeHead(envelope, flags, message.length);
  envelope.set(message, envelopeHeadBytes);
  return envelope;
}

/** What stands before the bytes of a message that is nothing but a field of so many: 7 to 11 bytes. */
export function encodeFieldHead(tag: number, fieldBytes: number): Buffer {
  const lengthBytes = varintBytes(fieldBytes);
  const head = Buffer.allocUnsafe(envelopeHeadBytes + 1 + lengthBytes);
  writeHead(head, 0, 1 + lengthBytes + fieldBytes);
  head[envelopeHeadBytes] = tag;
  let at = envelopeHeadBytes + 1;
  let rest = fieldBytes;
  for (; rest > 0x7f; rest >>>= varintBits) {
    head[at] = (rest & 0x7f) | 0x80;
    at += 1;
  }
  head[at] = rest;
  return head;
}

function writeHead(envelope: Buffer, flags: number, messageBytes: number): void {
  envelope[0] = flags;
  envelope.writeUInt32BE(messageBytes, 1);
}
