import type { ServerResponse } from "node:http";
import { drained, type StreamLimits } from "./back-pressure.ts";
import type { Exchange } from "./exchange.ts";

/** Bytes that are encoded and written in one go, a multiple of three. */
const sliceBytes = 768 * 1024;

/** Writes an answer no faster than its client takes it; whoever writes waits for what `write` returns. */
export class AnswerWriter {
  readonly response: ServerResponse;
  readonly #exchange: Exchange;
  readonly #limits: StreamLimits;

  constructor(exchange: Exchange, limits: StreamLimits) {
    this.response = exchange.response;
    this.#exchange = exchange;
    this.#limits = limits;
  }

  /** `latin1` is for texts known to be ASCII. Rejects with DomainError: timed_out, cancelled. */
  write(text: string, encoding: "utf8" | "latin1" = "utf8"): Promise<void> | undefined {
    return this.push(text, encoding) ? undefined : drained(this.response, this.#limits);
  }

  /** Writes without a wait, for short texts; false when the client has not taken what was written before. */
  push(text: string, encoding: "utf8" | "latin1" = "utf8"): boolean {
    this.#exchange.bytesSent += Buffer.byteLength(text, encoding);
    return this.response.write(text, encoding);
  }

  /** Writes bytes that are there whole as base64, slice by slice. */
  async writeBase64(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length; from += sliceBytes) {
      const slice = bytes.subarray(from, from + sliceBytes);
      const text = Buffer.from(slice.buffer, slice.byteOffset, slice.byteLength).toString("base64");
      await this.write(text, "latin1");
    }
  }
}
