/** A piece from here on is kept as it came, if it is at least half of its buffer. */
const largePieceBytes = 4096;
const firstBlockBytes = 512;
const maxBlockBytes = 64 << 10;
const noBytes: Buffer = Buffer.alloc(0);

/**
 * The bytes of a body in blocks that are never moved as a whole. They take at most twice what they weigh, however small
 * the pieces were in which they came: a small one is copied out of its buffer, which may be a thousand times its size.
 */
export class BodyBytes {
  readonly #blocks: Buffer[] = [];
  /** Where in the body each block begins. */
  readonly #starts: number[] = [];
  /** What is left of the block that was made last. */
  #free = noBytes;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The first bytes, so many if they have come. */
  head(most: number): Buffer {
    return Buffer.concat([...this.pieces(0, Math.min(most, this.#size))]);
  }

  append(piece: Uint8Array): void {
    const bytes = asBuffer(piece);
    if (bytes.length >= largePieceBytes && 2 * bytes.length >= bytes.buffer.byteLength) {
      this.#add(bytes);
      return;
    }
    for (let from = 0; from < bytes.length; ) {
      if (this.#free.length === 0) this.#makeBlock(bytes.length - from);
      const copied = bytes.copy(this.#free, 0, from);
      this.#add(this.#free.subarray(0, copied));
      this.#free = this.#free.subarray(copied);
      from += copied;
    }
  }

  /** A range in pieces of 64 KiB at most, none of them copied. */
  *pieces(from = 0, until = this.#size): Generator<Buffer> {
    for (let index = this.#blockAt(from), at = from; at < until; index += 1) {
      const [start, block] = [this.#starts[index] as number, this.#blocks[index] as Buffer];
      for (const end = Math.min(until, start + block.length); at < end; ) {
        const piece = block.subarray(at - start, Math.min(at - start + maxBlockBytes, end - start));
        yield piece;
        at += piece.length;
      }
    }
  }

  /** All of it in one piece, copied where it lies in more. */
  whole(): Buffer {
    return this.#blocks.length === 1 ? (this.#blocks[0] as Buffer) : Buffer.concat(this.#blocks, this.#size);
  }

  #makeBlock(leastBytes: number): void {
    const bytes = Math.min(Math.max(this.#size, leastBytes, firstBlockBytes), maxBlockBytes);
    this.#free = Buffer.allocUnsafeSlow(bytes);
  }

  /** Bytes that follow the last ones in memory, too, make one block with them. */
  #add(bytes: Buffer): void {
    const last = this.#blocks.at(-1);
    if (
      last !== undefined &&
      last.buffer === bytes.buffer &&
      last.byteOffset + last.length === bytes.byteOffset
    ) {
      this.#blocks[this.#blocks.length - 1] = Buffer.from(
        last.buffer,
        last.byteOffset,
        last.length + bytes.length,
      );
    } else {
      this.#blocks.push(bytes);
      this.#starts.push(this.#size);
    }
    this.#size += bytes.length;
  }

  #blockAt(position: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] as number) <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** The same bytes as a Buffer. */
export function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
