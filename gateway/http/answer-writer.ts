import type { ServerResponse } from "node:http";
import { drained, type StreamLimits } from "./back-pressure.ts";
import type { Exchange } from "./exchange.ts";

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
