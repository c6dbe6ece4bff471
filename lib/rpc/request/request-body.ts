/**
 * Receives the body of a request whole.
 *
 * 1. Nothing is read before `collect` is called.
 * 2. Bytes are taken from the caller's share of the budget as they come; where there is no room, the connection is read
 *    no further until there is. A body that proves to be large takes what it still lacks at once: many that have a part
 *    each would keep each other from ever being whole.
 * 3. What is kept is not more than twice what has come: a small piece is copied out of the buffer that it came in, which
 *    may be a thousand times its size. A large piece is copied once, when all of them are put together.
 */

import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import type { ByteShare } from "../../limits/byte-budget.ts";
import { DomainError } from "../../runtime/domain-error.ts";
import type { NodeRequest } from "../port/port-listener.ts";

/** What bounds a body. */
export interface BodyBounds {
  /**
   * Told how many bytes have come and the first of them; says how many there will be at most. Throws to refuse the body.
   */
  check(length: number, head: Uint8Array): number;
  readonly share: ByteShare;
  /** For all of it to come, milliseconds. */
  readonly timeoutMs: number;
  /** Ends the wait with its reason. */
  readonly signal: AbortSignal;
}

/** A body is small up to here, bytes. */
const smallBodyBytes = 64 << 10;
/** How much of the beginning `check` sees. */
const headBytes = 5;
const noRoomRetryMs = 1000;

/**
 * The whole body. Throws what `check` throws, `invalid_body` when it does not come in time, `overloaded` when there is
 * no room for it in time, `cancelled` when the client leaves, and the reason of the signal.
 */
export function collectBody(request: NodeRequest, bounds: BodyBounds): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const { share, signal } = bounds;
    const body = new Pieces();
    let hasWaited = false;
    const settle = (finish: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      request.pause();
      finish();
    };
    const fail = (error: unknown) => settle(() => reject(error));
    let takenBytes = 0;
    const onData = (chunk: Uint8Array) => {
      let mostBytes: number;
      try {
        mostBytes = bounds.check(body.length + chunk.length, body.headWith(chunk));
      } catch (refusal) {
        fail(refusal);
        return;
      }
      body.add(chunk);
      if (body.length <= takenBytes) return;
      const lacking = (body.length > smallBodyBytes ? mostBytes : body.length) - takenBytes;
      takenBytes += lacking;
      if (share.take(lacking)) return;
      hasWaited = true;
      request.pause();
      share.takeLater(lacking, () => request.resume());
    };
    const onEnd = () => {
      share.giveBack(takenBytes - body.length);
      settle(() => resolve(body.join()));
    };
    const onClose = () => fail(new DomainError(ErrorReason.CANCELLED, "the caller went away"));
    const onAbort = () => fail(signal.reason);
    const timer = setTimeout(() => fail(hasWaited ? noRoom() : tooSlow()), bounds.timeoutMs);
    if (signal.aborted) onAbort();
    else if (request.readableEnded) onEnd();
    else if (request.destroyed) onClose();
    else {
      signal.addEventListener("abort", onAbort, { once: true });
      request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
    }
  });
}

function tooSlow(): DomainError {
  return DomainError.invalid([{ path: "", message: "did not arrive in time" }]);
}

/** Nothing is free in the budget now. */
export function noRoom(): DomainError {
  return new DomainError(ErrorReason.OVERLOADED, "no room for the request", { retryAfterMs: noRoomRetryMs });
}

/** A piece from here on is kept as it came, if it is at least half of its buffer. */
const largePieceBytes = 4096;
const firstBlockBytes = 512;
const maxBlockBytes = 64 << 10;

/** What has come of a body. */
class Pieces {
  readonly #pieces: Uint8Array[] = [];
  /** For small pieces; its first `#blockUsed` bytes are the last of the body. */
  #block = new Uint8Array(0);
  #blockUsed = 0;
  #blockStart = 0;
  #head = new Uint8Array(0);
  length = 0;

  /** The first bytes of the body, these included. */
  headWith(chunk: Uint8Array): Uint8Array {
    if (this.#head.length < headBytes) {
      this.#head = Uint8Array.from([...this.#head, ...chunk.subarray(0, headBytes - this.#head.length)]);
    }
    return this.#head;
  }

  add(chunk: Uint8Array): void {
    this.length += chunk.length;
    if (chunk.length >= largePieceBytes && 2 * chunk.length >= chunk.buffer.byteLength) {
      this.#endBlock();
      this.#pieces.push(chunk);
      return;
    }
    for (let at = 0; at < chunk.length; ) {
      if (this.#blockUsed === this.#block.length) this.#beginBlock();
      const part = chunk.subarray(at, at + this.#block.length - this.#blockUsed);
      this.#block.set(part, this.#blockUsed);
      this.#blockUsed += part.length;
      at += part.length;
    }
  }

  /** All of it in one buffer. */
  join(): Uint8Array {
    this.#endBlock();
    const [first] = this.#pieces;
    if (first !== undefined && this.#pieces.length === 1) return first;
    const whole = new Uint8Array(this.length);
    let at = 0;
    for (const piece of this.#pieces.splice(0)) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  #beginBlock(): void {
    this.#endBlock();
    const bytes = Math.min(Math.max(2 * this.#block.length, firstBlockBytes), maxBlockBytes);
    this.#block = new Uint8Array(bytes);
    this.#blockUsed = 0;
    this.#blockStart = 0;
  }

  /** What the block has goes to the pieces; it is filled on behind that. */
  #endBlock(): void {
    if (this.#blockUsed > this.#blockStart) {
      this.#pieces.push(this.#block.subarray(this.#blockStart, this.#blockUsed));
    }
    this.#blockStart = this.#blockUsed;
  }
}
