import type { ServerResponse } from "node:http";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Exchange } from "./exchange.ts";

/** What bounds an answer that is streamed. */
export interface StreamLimits {
  /** How long the client may take nothing. */
  stallTimeoutMs: number;
  /** When all must have ended, monotonic milliseconds. */
  deadlineMs: number;
  clock: Clock;
}

/** Resolves when the connection takes more. Throws timed_out on a stall or at the deadline, cancelled when it closes. */
export function drained(
  response: ServerResponse,
  { stallTimeoutMs, deadlineMs, clock }: StreamLimits,
): Promise<void> {
  if (response.destroyed) return Promise.reject(clientLeft());
  // An answer behind another one on its connection has no socket yet, and can't be stalled by its client.
  const { socket } = response;
  return new Promise((resolve, reject) => {
    const settle = (error?: DomainError) => {
      clearTimeout(timer);
      socket?.setTimeout(0);
      response.off("drain", onDrain).off("close", onClose).off("timeout", onStall);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onDrain = () => settle();
    const onClose = () => settle(clientLeft());
    const onStall = () => settle(new DomainError(ErrorReason.TIMED_OUT, "the client takes nothing"));
    const onDeadline = () => settle(new DomainError(ErrorReason.TIMED_OUT, "the request took too long"));
    const timer = setTimeout(onDeadline, Math.max(0, deadlineMs - clock.monotonicMs()));
    // The socket's own timer counts progress within one write, which `drain` does not show.
    socket?.setTimeout(stallTimeoutMs);
    response.on("drain", onDrain).on("close", onClose).on("timeout", onStall);
  });
}

/** What a request ends with whose client went away. */
export function clientLeft(): DomainError {
  return new DomainError(ErrorReason.CANCELLED, "the client went away");
}

/** Of many texts written at once, those before the next may be so many bytes that the connection has not taken. */
const maxUnsentBytes = 256 * 1024;

/**
 * Writes an answer no faster than its client takes it; whoever writes waits for what is returned. Rejects with
 * DomainError: timed_out, cancelled.
 */
export class AnswerWriter {
  readonly response: ServerResponse;
  readonly #exchange: Exchange;
  readonly #limits: StreamLimits;

  constructor(exchange: Exchange, limits: StreamLimits) {
    this.response = exchange.response;
    this.#exchange = exchange;
    this.#limits = limits;
  }

  /** `latin1` is for texts known to be ASCII. */
  write(text: string, encoding: "utf8" | "latin1" = "utf8"): Promise<void> | undefined {
    this.push(text, encoding);
    return this.response.writableNeedDrain ? drained(this.response, this.#limits) : undefined;
  }

  /** Writes texts known to be ASCII, amid which the connection may lie behind a little. */
  async writeAll(texts: Iterable<string>): Promise<void> {
    for (const text of texts) {
      this.push(text, "latin1");
      if (this.response.writableLength >= maxUnsentBytes) await drained(this.response, this.#limits);
    }
  }

  /** Writes without a wait, for short texts; false when the client has not taken what was written before. */
  push(text: string, encoding: "utf8" | "latin1" = "utf8"): boolean {
    this.#exchange.bytesSent += Buffer.byteLength(text, encoding);
    return this.response.write(text, encoding);
  }
}
