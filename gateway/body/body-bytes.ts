const maxBlockBytes = 64 << 10;

/**
 * The bytes of a body in blocks, so that they take what they weigh however small the pieces were in which they came, and
 * are never moved as a whole.
 */
export class BodyBytes {
  readonly #mostBytes: number;
  readonly #blocks: Buffer[] = [];
  #blockBytes: number;
  #size = 0;

  /** For a body of at most so many bytes; of exactly so many where its length was announced. */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
    this.#blockBytes = Math.min(mostBytes, maxBlockBytes);
  }

  get size(): number {
    return this.#size;
  }

  append(chunk: Buffer): void {
    if (this.#size === 0 && chunk.length === this.#mostBytes) {
      this.#blocks.push(chunk);
      this.#blockBytes = chunk.length;
      this.#size = chunk.length;
      return;
    }
    for (let from = 0; from < chunk.length; ) {
      const at = this.#size % this.#blockBytes;
      if (at === 0) this.#blocks.push(Buffer.allocUnsafeSlow(this.#blockBytes));
      const copied = chunk.copy(this.#blocks.at(-1) as Buffer, at, from);
      from += copied;
      this.#size += copied;
    }
  }

  /** A range in pieces of at most a block, none of them copied. */
  *pieces(from: number, until: number): Generator<Buffer> {
    for (let at = from; at < until; ) {
      const index = Math.floor(at / this.#blockBytes);
      const blockFrom = index * this.#blockBytes;
      const end = Math.min(until - blockFrom, this.#blockBytes);
      yield (this.#blocks[index] as Buffer).subarray(at - blockFrom, end);
      at = blockFrom + end;
    }
  }

  /** All of it in one piece, copied where it lies in more. */
  whole(): Buffer {
    const pieces = [...this.pieces(0, this.#size)];
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, this.#size);
  }
}
