import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import type { BodyBudget } from "./body-budget.ts";
import type { Exchange } from "./exchange.ts";
import { type JsonObject, parseJsonBody } from "./json-body.ts";

/** What bounds a request's body. */
export interface BodyLimits {
  maxBytes: number;
  /** For the wait for room and for the arrival, each. */
  timeoutMs: number;
  budget: BodyBudget;
}

/**
 * The whole body, empty when the request has none. Its share of the budget is held until the answer has ended.
 * Throws body_too_large (from Content-Length before a byte is read, else while reading), invalid_body when it does
 * not arrive in time, service_unavailable when there is no room, cancelled when the client leaves.
 */
export async function readBody(exchange: Exchange, limits: BodyLimits): Promise<Buffer> {
  const { headers } = exchange.request;
  const isChunked = headers["transfer-encoding"] !== undefined;
  const announced = isChunked ? limits.maxBytes : Number(headers["content-length"] ?? 0);
  if (announced > limits.maxBytes) throw tooLarge();
  if (announced === 0) return Buffer.alloc(0);
  const share = await limits.budget.reserve(announced, limits.timeoutMs);
  if (exchange.response.destroyed) {
    share.release();
    throw left();
  }
  exchange.response.once("close", share.release);
  if (exchange.awaitsContinue) exchange.response.writeContinue();
  try {
    const body = await collect(exchange, limits);
    share.shrink(body.byteLength);
    return body;
  } catch (thrown) {
    share.release();
    throw thrown;
  }
}

function collect({ request }: Exchange, { maxBytes, timeoutMs }: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stop = () => {
      clearTimeout(timer);
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose).pause();
    };
    const fail = (error: DomainError) => {
      stop();
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.byteLength;
      if (size > maxBytes) fail(tooLarge());
      else chunks.push(chunk);
    };
    const onEnd = () => {
      stop();
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size));
    };
    const onClose = () => fail(left());
    const timer = setTimeout(() => fail(tooSlow()), timeoutMs);
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

function tooLarge(): DomainError {
  return new DomainError(ErrorReason.BODY_TOO_LARGE, "the body is too large");
}

function tooSlow(): DomainError {
  return DomainError.invalid([{ path: "", message: "did not arrive in time" }]);
}

function left(): DomainError {
  return new DomainError(ErrorReason.CANCELLED, "the client went away");
}

/** The JSON object that a request's body holds. Throws what `readBody` and `parseJsonBody` throw. */
export async function readJsonBody(exchange: Exchange, limits: BodyLimits): Promise<JsonObject> {
  return parseJsonBody(await readBody(exchange, limits), exchange.request.headers);
}
