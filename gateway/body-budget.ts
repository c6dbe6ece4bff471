import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";

/** A share of the budget; `shrink` and `release` may be called in any order, each more than once. */
export interface BodyShare {
  /** Gives back all but `bytes`. */
  shrink(bytes: number): void;
  release(): void;
}

/** How long a client should wait after it found no room, milliseconds. */
const retryAfterMs = 1000;

/**
 * Bounds the bytes that request bodies hold at one time over all requests, first come, first served.
 * What is asked for counts from the start, so that bodies that have begun always find room to end.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #waiting: { bytes: number; grant: () => void }[] = [];
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes taken now. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Takes a share, waiting for room up to `timeoutMs`. Throws service_unavailable after that. */
  async reserve(bytes: number, timeoutMs: number): Promise<BodyShare> {
    const wanted = Math.min(bytes, this.#maxBytes);
    if (this.#waiting.length > 0 || !this.#fits(wanted)) await this.#wait(wanted, timeoutMs);
    else this.#usedBytes += wanted;
    return this.#share(wanted);
  }

  #fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#maxBytes;
  }

  #wait(bytes: number, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const entry = {
        bytes,
        grant: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        this.#grantWaiting();
        reject(new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "no room for the body", { retryAfterMs }));
      }, timeoutMs);
      this.#waiting.push(entry);
    });
  }

  #grantWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#usedBytes += next.bytes;
      next.grant();
    }
  }

  #share(bytes: number): BodyShare {
    let held = bytes;
    const shrink = (keep: number) => {
      if (keep >= held) return;
      this.#usedBytes -= held - keep;
      held = keep;
      this.#grantWaiting();
    };
    return { shrink, release: () => shrink(0) };
  }
}
