/**
 * The arrival of one request's body.
 *
 * 1. Nothing is read before there is room for the first of it, and a client that waits for `100 Continue` is told so
 *    only then. From there on what was read is reserved, and where there is no room the reading stops: at most what one
 *    read brings is held beyond the reservation.
 * 2. Waiting for room and arriving have a time limit each; one doesn't count in the other.
 * 3. What is reserved is given back when the answer has ended, or at once when the body is refused.
 */
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { JsonBounds } from "../../lib/limits/json-bounds.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Exchange } from "../http/exchange.ts";
import type { BodyBudget, BodyOwner, BodyShare } from "./body-budget.ts";
import { BodyBytes } from "./body-bytes.ts";

/** What bounds a request's body. */
export interface BodyLimits {
  maxBytes: number;
  /** For each wait for room, and for the arrival. */
  timeoutMs: number;
  budget: BodyBudget;
  clock: Clock;
}

const reservedAtOnceBytes = 64 << 10;
/** How long a client should wait after it found no room, milliseconds. */
const retryAfterMs = 1000;
const keyWeight = 2;
const accountWeight = 3;

/**
 * The whole body, empty when the request has none; `scan` sees it as it comes. Throws body_too_large (from
 * Content-Length before a byte is read, else while reading), invalid_body when it does not arrive in time,
 * service_unavailable when there is no room, cancelled when the client leaves, and what the scan throws.
 */
export async function receiveBody(
  exchange: Exchange,
  limits: BodyLimits,
  scan?: JsonBounds,
): Promise<BodyBytes> {
  const { headers } = exchange.request;
  const isChunked = headers["transfer-encoding"] !== undefined;
  const mostBytes = isChunked ? limits.maxBytes : Number(headers["content-length"] ?? 0);
  if (mostBytes > limits.maxBytes) throw tooLarge();
  if (mostBytes === 0) return new BodyBytes(0);
  if (exchange.response.destroyed) throw left();
  return await new BodyArrival(exchange, limits, mostBytes, scan).run();
}

class BodyArrival {
  readonly #exchange: Exchange;
  readonly #limits: BodyLimits;
  readonly #mostBytes: number;
  readonly #scan: JsonBounds | undefined;
  readonly #share: BodyShare;
  readonly #body: BodyBytes;
  readonly #outcome = Promise.withResolvers<BodyBytes>();
  #isReading = false;
  #timer: NodeJS.Timeout | undefined;
  #arrivalLeftMs: number;
  #arrivingSinceMs = 0;

  constructor(exchange: Exchange, limits: BodyLimits, mostBytes: number, scan: JsonBounds | undefined) {
    this.#exchange = exchange;
    this.#limits = limits;
    this.#mostBytes = mostBytes;
    this.#scan = scan;
    this.#share = limits.budget.open(ownersOf(exchange));
    this.#body = new BodyBytes(mostBytes);
    this.#arrivalLeftMs = limits.timeoutMs;
  }

  run(): Promise<BodyBytes> {
    const { request, response } = this.#exchange;
    response.once("close", () => this.#share.release());
    request.on("close", this.#onClose).on("error", this.#onClose);
    const firstBytes = Math.min(this.#mostBytes, reservedAtOnceBytes);
    if (this.#share.grow(firstBytes, this.#onRoom)) this.#read();
    else this.#waitForRoom();
    return this.#outcome.promise;
  }

  #waitForRoom(): void {
    const { timeoutMs, clock } = this.#limits;
    if (this.#isReading) {
      this.#exchange.request.pause();
      this.#arrivalLeftMs -= clock.monotonicMs() - this.#arrivingSinceMs;
    }
    this.#limitTo(timeoutMs, noRoom);
  }

  readonly #onRoom = () => this.#read();

  #read(): void {
    const { request, response, awaitsContinue } = this.#exchange;
    this.#arrivingSinceMs = this.#limits.clock.monotonicMs();
    this.#limitTo(Math.max(0, this.#arrivalLeftMs), tooSlow);
    if (this.#isReading) {
      request.resume();
      return;
    }
    this.#isReading = true;
    if (awaitsContinue) response.writeContinue();
    request.on("data", this.#onData).on("end", this.#onEnd);
  }

  readonly #onData = (chunk: Buffer) => {
    if (this.#body.size + chunk.byteLength > this.#mostBytes) {
      this.#fail(tooLarge());
      return;
    }
    try {
      this.#scan?.take(chunk);
    } catch (thrown) {
      this.#fail(thrown);
      return;
    }
    this.#body.append(chunk);
    if (this.#body.size > this.#share.bytes && !this.#reserve()) this.#waitForRoom();
  };

  #reserve(): boolean {
    const { bytes } = this.#share;
    const missing = this.#body.size - bytes;
    const wanted = Math.ceil(missing / reservedAtOnceBytes) * reservedAtOnceBytes;
    return this.#share.grow(Math.min(wanted, this.#mostBytes - bytes), this.#onRoom);
  }

  readonly #onEnd = () => {
    this.#stop();
    this.#share.settle(this.#body.size);
    this.#outcome.resolve(this.#body);
  };

  readonly #onClose = () => this.#fail(left());

  #limitTo(timeoutMs: number, errorOf: () => DomainError): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(errorOf()), timeoutMs);
  }

  #fail(error: unknown): void {
    this.#stop();
    this.#share.release();
    this.#outcome.reject(error);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    const { request } = this.#exchange;
    request.off("data", this.#onData).off("end", this.#onEnd);
    request.off("close", this.#onClose).off("error", this.#onClose).pause();
  }
}

/** A key and its account; what a key has rotated from counts as the same one. */
function ownersOf({ principal }: Exchange): readonly BodyOwner[] {
  if (principal === undefined) return [];
  return [
    { name: `key ${principal.rateBucket || principal.keyHash}`, weight: keyWeight },
    { name: `account ${principal.accountId}`, weight: accountWeight },
  ];
}

function tooLarge(): DomainError {
  return new DomainError(ErrorReason.BODY_TOO_LARGE, "the body is too large");
}

function tooSlow(): DomainError {
  return DomainError.invalid([{ path: "", message: "did not arrive in time" }]);
}

function noRoom(): DomainError {
  return new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "no room for the body", { retryAfterMs });
}

function left(): DomainError {
  return new DomainError(ErrorReason.CANCELLED, "the client went away");
}
