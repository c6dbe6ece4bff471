/**
 * Collects the body of one request.
 *
 * 1. Nothing is read before there is room for the first of it. From there on what was read is reserved, and where there
 *    is no room the reading stops: at most what one read brings is held beyond the reservation.
 * 2. Waiting for room and arriving have a time limit each; one doesn't count in the other.
 * 3. What is reserved and was not needed is given back when the body is whole, and all of it at once when it is refused.
 */
import type { Readable } from "node:stream";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { BodyBytes } from "./body-bytes.ts";
import type { ByteShare } from "./byte-budget.ts";

interface BodyBounds {
  /** For each wait for room, and for the arrival. */
  readonly timeoutMs: number;
  readonly share: ByteShare;
  /** How many bytes are to be reserved when so many have come. */
  reserve(size: number): number;
  /** Sees each piece, which is the last of what has come so far. Throws to refuse the body. */
  inspect(piece: Buffer, body: BodyBytes): void;
  /** Called once before the first byte is read. */
  begin?(): void;
  /** What to say where there is no room in time. */
  readonly noRoom: () => DomainError;
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal;
}

type BodySource = Pick<Readable, "on" | "off" | "pause" | "resume" | "readableEnded" | "destroyed">;

/**
 * The whole body. Throws what `inspect` and `noRoom` say, `invalid_body` when it does not arrive in time, `cancelled`
 * when the client leaves, and the reason of the signal.
 */
export function collectBody(source: BodySource, bounds: BodyBounds): Promise<BodyBytes> {
  return new BodyCollector(source, bounds).run();
}

class BodyCollector {
  readonly #source: BodySource;
  readonly #bounds: BodyBounds;
  readonly #body = new BodyBytes();
  readonly #outcome = Promise.withResolvers<BodyBytes>();
  #isReading = false;
  #timer: NodeJS.Timeout | undefined;
  #arrivalLeftMs: number;
  #arrivingSinceMs = 0;

  constructor(source: BodySource, bounds: BodyBounds) {
    this.#source = source;
    this.#bounds = bounds;
    this.#arrivalLeftMs = bounds.timeoutMs;
  }

  run(): Promise<BodyBytes> {
    const { signal } = this.#bounds;
    if (signal?.aborted) this.#onAbort();
    else if (this.#source.readableEnded) this.#onEnd();
    else if (this.#source.destroyed) this.#onClose();
    else {
      signal?.addEventListener("abort", this.#onAbort, { once: true });
      this.#source.on("close", this.#onClose).on("error", this.#onClose);
      if (this.#hasRoom()) this.#read(); // 1.
    }
    return this.#outcome.promise;
  }

  /** Reserves what is due; false, and the reading stops until there is room, where there is none now. */
  #hasRoom(): boolean {
    const { share, timeoutMs, noRoom } = this.#bounds;
    const missing = this.#bounds.reserve(this.#body.size) - share.bytes;
    if (missing <= 0 || share.grow(missing, this.#read)) return true;
    if (this.#isReading) {
      this.#source.pause(); // 1.
      this.#arrivalLeftMs -= performance.now() - this.#arrivingSinceMs; // 2.
    }
    this.#limitTo(timeoutMs, noRoom);
    return false;
  }

  readonly #read = () => {
    this.#arrivingSinceMs = performance.now();
    this.#limitTo(Math.max(0, this.#arrivalLeftMs), tooSlow); // 2.
    if (this.#isReading) {
      this.#source.resume();
      return;
    }
    this.#isReading = true;
    this.#bounds.begin?.();
    this.#source.on("data", this.#onData).on("end", this.#onEnd);
  };

  readonly #onData = (piece: Buffer) => {
    this.#body.append(piece);
    try {
      this.#bounds.inspect(piece, this.#body);
    } catch (thrown) {
      this.#fail(thrown);
      return;
    }
    if (this.#body.size > this.#bounds.share.bytes) this.#hasRoom();
  };

  readonly #onEnd = () => {
    this.#stop();
    this.#bounds.share.settle(this.#body.size); // 3.
    this.#outcome.resolve(this.#body);
  };

  readonly #onClose = () => this.#fail(new DomainError(ErrorReason.CANCELLED, "the client went away"));

  readonly #onAbort = () => this.#fail(this.#bounds.signal?.reason);

  #limitTo(timeoutMs: number, errorOf: () => DomainError): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(errorOf()), timeoutMs);
  }

  #fail(error: unknown): void {
    this.#stop();
    this.#bounds.share.release(); // 3.
    this.#outcome.reject(error);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#bounds.signal?.removeEventListener("abort", this.#onAbort);
    this.#source.off("data", this.#onData).off("end", this.#onEnd);
    this.#source.off("close", this.#onClose).off("error", this.#onClose).pause();
  }
}

function tooSlow(): DomainError {
  return DomainError.invalid([{ path: "", message: "did not arrive in time" }]);
}
