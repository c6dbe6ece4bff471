const bytesPerGroup = 3;

/**
 * Encodes bytes that come in pieces as one base64 text (RFC 4648) without holding more than two of them back; nothing
 * of a piece is copied but that.
 */
export class Base64Stream {
  #carry: Buffer = Buffer.alloc(0);

  /** The text that is certain once these bytes are known. */
  push(bytes: Uint8Array): string {
    const missing = this.#carry.length === 0 ? 0 : bytesPerGroup - this.#carry.length;
    if (bytes.length < missing) {
      this.#carry = Buffer.concat([this.#carry, bytes]);
      return "";
    }
    const head =
      missing === 0 ? "" : Buffer.concat([this.#carry, bytes.subarray(0, missing)]).toString("base64");
    const end = bytes.length - ((bytes.length - missing) % bytesPerGroup);
    this.#carry = Buffer.from(bytes.subarray(end));
    return head + encode(bytes, missing, end);
  }

  /** The rest of the text; afterwards a new one begins. */
  end(): string {
    const rest = this.#carry.toString("base64");
    this.#carry = Buffer.alloc(0);
    return rest;
  }
}

function encode({ buffer, byteOffset }: Uint8Array, from: number, to: number): string {
  return Buffer.from(buffer, byteOffset + from, to - from).toString("base64");
}
