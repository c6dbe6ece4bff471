const bytesPerGroup = 3;
/** Bytes of one part, a multiple of three: longer strings would cost more to make and to collect. */
const sliceBytes = 72 * 1024;

/**
 * Encodes bytes that come in pieces as one base64 text (RFC 4648) without holding more than two of them back; nothing
 * of a piece is copied but that.
 */
export class Base64Stream {
  #carry: Buffer = Buffer.alloc(0);

  /** The text that is certain once these bytes are known, in parts; take them all before the next call. */
  *push(bytes: Uint8Array): Generator<string, void, undefined> {
    const missing = this.#carry.length === 0 ? 0 : bytesPerGroup - this.#carry.length;
    if (bytes.length < missing) {
      this.#carry = Buffer.concat([this.#carry, bytes]);
      return;
    }
    // A text of its own: joined to the next one it would make a copy of that.
    if (missing > 0) yield Buffer.concat([this.#carry, bytes.subarray(0, missing)]).toString("base64");
    const end = bytes.length - ((bytes.length - missing) % bytesPerGroup);
    this.#carry = Buffer.from(bytes.subarray(end));
    yield* base64Of(bytes.subarray(missing, end));
  }

  /** The rest of the text; afterwards a new one begins. */
  end(): string {
    const rest = this.#carry.toString("base64");
    this.#carry = Buffer.alloc(0);
    return rest;
  }
}

/** Bytes that are there whole as one base64 text, in parts. */
export function* base64Of({ buffer, byteOffset, length }: Uint8Array): Generator<string, void, undefined> {
  for (let from = 0; from < length; from += sliceBytes) {
    yield Buffer.from(buffer, byteOffset + from, Math.min(sliceBytes, length - from)).toString("base64");
  }
}
