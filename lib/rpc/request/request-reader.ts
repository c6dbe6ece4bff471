/**
 * Reads the requests of an RPC port. The stock handlers would read, inflate and decode a message before anybody is
 * asked who sends it.
 *
 * 1. The stock handlers get a request with an empty message. It passes every interceptor (who calls, whether they may,
 *    how often) before the innermost one reads the body and puts the message in the empty one's place.
 * 2. A message is bounded three times: in bytes as they come, in bytes once inflated, and in what is in it before it is
 *    decoded (request-limits.ts).
 * 3. Its bytes count for its caller in the port's budget until the call is over, which may be after its end
 *    (call-life.ts).
 * 4. A client that was told to wait (`Expect: 100-continue`) is asked for its body when the body is read.
 * 5. Streams of requests are read by the stock handlers as they come; the one that there is, reflection, is open to all
 *    and bounded by small messages and by an end when nothing comes.
 */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  type ContextValues,
  createContextKey,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { bulkhead } from "cockatiel";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { ByteBudget, type ByteShare } from "../../limits/byte-budget.ts";
import { collectBody } from "../../limits/collect-body.ts";
import { DomainError } from "../../runtime/domain-error.ts";
import { wordOfReason } from "../../runtime/error-code.ts";
import { beginCallLife, callLifeOf } from "../call-life.ts";
import type { NodeRequest, NodeResponse } from "../port/port-listener.ts";
import { byteHolderKey, requestLogKey } from "../request-context.ts";
import { only, type RequestFormat, requestFormatOf, withEmptyMessage } from "./request-format.ts";
import { type RequestLimits, requestLimitsOf } from "./request-limits.ts";
import {
  checkBody,
  envelopeHeadBytes,
  inflate,
  MessageDecoder,
  openEnvelope,
  tooLarge,
} from "./request-message.ts";

/** A request whose body nobody has read. */
export interface UnreadRequest {
  readonly request: NodeRequest;
  readonly response: NodeResponse;
  readonly format: RequestFormat;
}

const withheldKey = createContextKey<UnreadRequest | undefined>(undefined, {
  description: "body to be read",
});

/** Messages that are inflated at once: as many as there are threads to do it. Each may take a window of 16 MiB. */
const maxInflating = 4;
const awaitsContinue = /(^|,)\s*100-continue/i;

/** A body is small up to here, bytes. */
const smallBodyBytes = 64 << 10;
const noRoomRetryMs = 1000;
const noBytes = new Uint8Array(0);
const ignore = () => undefined;

/** Of request messages that all calls of a port hold together, at least; enough for thousands of texts. */
const minBudgetBytes = 64 << 20;
/** So many of the largest requests that a port takes are held at once, half of them by one caller. */
const largestRequestsHeld = 8;

/** Reads the requests of one port. */
export class RequestReader {
  readonly #bodyTimeoutMs: number;
  readonly #budget = new ByteBudget({ maxBytes: minBudgetBytes, maxShareBytes: 0 });
  readonly #decoder = new MessageDecoder();
  readonly #inflating = bulkhead(maxInflating, Number.POSITIVE_INFINITY);

  /** Bodies have so many milliseconds to come. */
  constructor(bodyTimeoutMs: number) {
    this.#bodyTimeoutMs = bodyTimeoutMs;
  }

  /** The request as the stock handlers get it; its body is left where it is. */
  withhold(
    universal: UniversalServerRequest & { readonly contextValues: ContextValues },
    request: NodeRequest,
    response: NodeResponse,
  ): UniversalServerRequest {
    const format = requestFormatOf(universal);
    universal.contextValues.set(withheldKey, { request, response, format });
    return withEmptyMessage(universal, format); // 1.
  }

  /** How large requests of this method may be, at a service that takes messages of so many bytes at most. */
  limitsOf(method: DescMethod, readMaxBytes: number): RequestLimits {
    const limits = requestLimitsOf(method, readMaxBytes);
    const { maxBytes } = limits;
    this.#budget.widen({ maxBytes: largestRequestsHeld * maxBytes, maxShareBytes: maxBytes });
    return limits;
  }

  /** Innermost of the interceptors of a method in the stock handlers. */
  interceptor(limits: RequestLimits): Interceptor {
    return (next) => async (request) => {
      const withheld = request.contextValues.get(withheldKey);
      if (withheld === undefined) return next(request); // 5.
      // Here the stock handlers say what they have against the request's head.
      if (request.stream) await request.message[Symbol.asyncIterator]().next();
      const message = await this.read(withheld, request, limits); // 1.
      return request.stream ? next({ ...request, message: only(message) }) : next({ ...request, message });
    };
  }

  /** The message of a request that has passed all interceptors. Throws ConnectError, and the reason of the signal. */
  async read(
    unread: UnreadRequest,
    request: UnaryRequest | StreamRequest,
    limits: RequestLimits,
  ): Promise<Message> {
    const { contextValues } = request;
    beginCallLife(request);
    const share = this.#budget.open([{ name: contextValues.get(byteHolderKey), weight: 1 }]);
    try {
      const bytes = await this.#readBytes(unread, request.signal, limits, share);
      const message = await this.#decoder.decode(request.method.input, bytes, unread.format, limits); // 2.
      callLifeOf(contextValues).whenOver(share.release); // 3.
      return message;
    } catch (thrown) {
      share.release();
      if (thrown !== request.signal.reason) {
        const reason = wordOfReason(DomainError.from(thrown).reason);
        contextValues.get(requestLogKey).info({ reason }, "request could not be read");
      }
      throw thrown instanceof DomainError ? thrown.toConnectError() : thrown;
    }
  }

  async #readBytes(
    { request, response, format }: UnreadRequest,
    signal: AbortSignal,
    { maxBytes }: RequestLimits,
    share: ByteShare,
  ): Promise<Uint8Array> {
    const bounds = { maxBytes, share, signal, timeoutMs: this.#bodyTimeoutMs };
    const body = format.query ?? (await receiveBody(request, response, format, bounds)); // 2.
    const { isCompressed, message } = openEnvelope(body, format);
    if (!isCompressed) {
      if (message.length > maxBytes) throw tooLarge(maxBytes);
      return message;
    }
    const inflated = await this.#inflating.execute(() => inflate(message, format.encoding, maxBytes)); // 2.
    if (!share.grow(inflated.length, ignore)) throw noRoom();
    share.settle(inflated.length);
    return inflated;
  }
}

interface MessageBounds {
  readonly maxBytes: number;
  readonly share: ByteShare;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * The body; a length that was announced is checked before a byte of it is read. One that proves to be large takes what
 * it still lacks at once: many that have a part each would keep each other from ever being whole.
 */
async function receiveBody(
  request: NodeRequest,
  response: NodeResponse,
  format: RequestFormat,
  { maxBytes, ...bounds }: MessageBounds,
): Promise<Uint8Array> {
  const { "content-length": announced, expect } = request.headers;
  const announcedBytes = announced === undefined ? Infinity : Number(announced);
  let mostBytes = 0;
  if (announced !== undefined) checkBody(announcedBytes, noBytes, format, maxBytes);
  const body = await collectBody(request, {
    ...bounds,
    reserve: (size) => (size > smallBodyBytes ? mostBytes : size),
    begin: () => {
      if (expect !== undefined && awaitsContinue.test(expect)) response.writeContinue(); // 4.
    },
    inspect(_piece, body) {
      const most = checkBody(body.size, body.head(envelopeHeadBytes), format, maxBytes);
      mostBytes = Math.max(body.size, Math.min(announcedBytes, most));
    },
    noRoom,
  });
  return body.whole();
}

/** Nothing is free in the budget now. */
function noRoom(): DomainError {
  return new DomainError(ErrorReason.OVERLOADED, "no room for the request", { retryAfterMs: noRoomRetryMs });
}
