import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
} from "@connectrpc/connect";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "./domain-error.ts";
import { wordOfReason } from "./error-code.ts";
import type { Log } from "./log.ts";
import { requestIdFrom, requestIdHeader, requestIdKey, requestLogKey } from "./request-context.ts";

/**
 * Server side, outermost: gives every call a request id (the caller's if it is valid), a logger that carries it, and
 * turns whatever a handler throws into an error with our detail. Bugs are logged with their stack and leave as
 * `internal` without a word about them.
 */
export function serverInterceptor(log: Log): Interceptor {
  return (next) => async (request) => {
    const requestId = requestIdFrom(request.header.get(requestIdHeader));
    const callLog = log.child({
      request_id: requestId,
      rpc: `${request.service.typeName}/${request.method.name}`,
    });
    request.contextValues.set(requestIdKey, requestId).set(requestLogKey, callLog);
    try {
      const response = await next(request);
      response.header.set(requestIdHeader, requestId);
      return response.stream ? withTranslatedErrors(response, request) : response;
    } catch (thrown) {
      throw translate(thrown, request);
    }
  };
}

type AnyRequest = Pick<UnaryRequest | StreamRequest, "signal" | "contextValues">;

/** A plain iterator: a generator would cost every frame several promises. */
function withTranslatedErrors(response: StreamResponse, request: AnyRequest): StreamResponse {
  const source = response.message[Symbol.asyncIterator]();
  const failed = (thrown: unknown): never => {
    throw translate(thrown, request);
  };
  const message: AsyncIterableIterator<Message> = {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => source.next().catch(failed),
    return: async () => (await source.return?.()) ?? { done: true, value: undefined },
    throw: async (thrown) => {
      if (source.throw === undefined) throw thrown;
      return source.throw(thrown).catch(failed);
    },
  };
  return { ...response, message };
}

/** Any thrown value as the error that leaves the process; logs what only we can mend. */
function translate(thrown: unknown, { signal, contextValues }: AnyRequest): ConnectError {
  const log = contextValues.get(requestLogKey);
  if (signal.aborted && isAbort(thrown, signal)) return abortError(signal);
  if (thrown instanceof ConnectError && thrown.code !== Code.Internal && thrown.code !== Code.Unknown)
    return thrown;
  const error = DomainError.from(thrown);
  if (error.reason === ErrorReason.INTERNAL) {
    log.error({ err: thrown }, "handler failed");
    return new DomainError(ErrorReason.INTERNAL, "internal error").toConnectError();
  }
  // Without its cause, which may hold an upstream's words about the caller's text.
  log.debug({ reason: wordOfReason(error.reason), detail: error.message }, "call refused or failed");
  return error.toConnectError();
}

function isAbort(thrown: unknown, signal: AbortSignal): boolean {
  if (thrown === signal.reason) return true;
  return thrown instanceof Error && (thrown.name === "AbortError" || thrown.name === "TimeoutError");
}

function abortError(signal: AbortSignal): ConnectError {
  const timedOut = signal.reason instanceof ConnectError && signal.reason.code === Code.DeadlineExceeded;
  const reason = timedOut ? ErrorReason.TIMED_OUT : ErrorReason.CANCELLED;
  return new DomainError(reason, timedOut ? "deadline exceeded" : "cancelled").toConnectError();
}

/** Client side: passes the request id on to the next process. */
export const forwardRequestId: Interceptor = (next) => (request) => {
  const requestId = request.contextValues.get(requestIdKey);
  if (requestId !== "") request.header.set(requestIdHeader, requestId);
  return next(request);
};
