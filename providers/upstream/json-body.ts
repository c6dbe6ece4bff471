import { randomUUID } from "node:crypto";

/** Bytes that stand in a JSON text as a string: their base64 behind a prefix such as `data:image/png;base64,`. */
export class Base64Text {
  readonly bytes: Uint8Array;
  readonly prefix: string;

  constructor(bytes: Uint8Array, prefix = "") {
    this.bytes = bytes;
    this.prefix = prefix;
  }
}

/**
 * The JSON of a value in pieces for a request's body. Images go from their bytes to one buffer of base64 each: no string
 * holds the whole text. No other string of the value may contain `mark`; a random one occurs in none.
 */
export function jsonBody(value: unknown, mark: string = randomUUID()): readonly Uint8Array[] {
  const texts: Base64Text[] = [];
  const json = JSON.stringify(value, (_, member: unknown) => {
    if (!(member instanceof Base64Text)) return member;
    texts.push(member);
    return member.prefix + mark;
  });
  return json.split(mark).flatMap((part, index) => {
    const text = texts[index];
    return [Buffer.from(part), ...(text === undefined ? [] : [encode(text.bytes)])];
  });
}

function encode(bytes: Uint8Array): Uint8Array {
  const { buffer, byteOffset, byteLength } = bytes;
  return Buffer.from(Buffer.from(buffer, byteOffset, byteLength).toString("base64"), "latin1");
}
