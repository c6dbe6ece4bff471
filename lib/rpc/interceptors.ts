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
import { DomainError } from "../runtime/domain-error.ts";
import { wordOfReason } from "../runtime/error-code.ts";
import type { Log } from "../runtime/log.ts";
import { isPeerAway } from "../runtime/peer-away.ts";
import { beginCallLife } from "./call-life.ts";
import { requestIdFrom, requestIdHeader, requestIdKey, requestLogKey } from "./request-context.ts";

interface CallEnd {
  /** `media.speech.v1.SpeechService/Synthesize`. */
  readonly rpc: string;
  /** Undefined when it ended well. */
  readonly code: Code | undefined;
  readonly durationMs: number;
}

/** Called once at the end of each call. */
export type OnCallEnd = (end: CallEnd) => void;

/**
 * Server side, outermost: gives every call a request id (the caller's if it is valid), a logger that carries it, and
 * turns whatever a handler throws into an error with our detail. Bugs are logged with their stack and leave as
 * `internal` without a word about them. What a call holds of limits and budgets hangs on its CallLife.
 */
export function serverInterceptor(log: Log, onEnd?: OnCallEnd): Interceptor {
  return (next) => async (request) => {
    const { contextValues } = request;
    // A port has given it one already, which its answer carries whatever comes of the call.
    const requestId = contextValues.get(requestIdKey) || requestIdFrom(request.header.get(requestIdHeader));
    const rpc = `${request.service.typeName}/${request.method.name}`;
    const callLog = log.child({ request_id: requestId, rpc });
    contextValues.set(requestIdKey, requestId).set(requestLogKey, callLog);
    beginCallLife(request);
    const ended = onEnd === undefined ? () => undefined : reportOnce(onEnd, rpc, request.signal);
    try {
      const response = await next(request);
      response.header.set(requestIdHeader, requestId);
      if (response.stream) return withTranslatedErrors(response, request, ended);
      ended(undefined);
      return response;
    } catch (thrown) {
      const error = translate(thrown, request);
      ended(error.code);
      throw error;
    }
  };
}

/** What has not ended when its signal is aborted was cancelled: nobody may ask its stream for more. */
function reportOnce(onEnd: OnCallEnd, rpc: string, signal: AbortSignal): (code: Code | undefined) => void {
  const startedMs = performance.now();
  let reported = false;
  const ended = (code: Code | undefined) => {
    if (reported) return;
    reported = true;
    onEnd({ rpc, code, durationMs: performance.now() - startedMs });
  };
  // It is aborted after every call; making an error for each that ended well would cost more than the call's metrics.
  const aborted = () => {
    if (!reported) ended(abortError(signal).code);
  };
  signal.addEventListener("abort", aborted, { once: true });
  return ended;
}

type AnyRequest = Pick<UnaryRequest | StreamRequest, "signal" | "contextValues">;

/** A plain iterator: a generator would cost every frame several promises. */
function withTranslatedErrors(
  response: StreamResponse,
  request: AnyRequest,
  ended: (code: Code | undefined) => void,
): StreamResponse {
  const source = response.message[Symbol.asyncIterator]();
  const failed = (thrown: unknown): never => {
    const error = translate(thrown, request);
    ended(error.code);
    throw error;
  };
  const passed = (step: IteratorResult<Message>) => {
    if (step.done) ended(undefined);
    return step;
  };
  const message: AsyncIterableIterator<Message> = {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => source.next().then(passed, failed),
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

/** A write to a client that has left fails by its connection, too, once the signal has given the reason. */
function isAbort(thrown: unknown, signal: AbortSignal): boolean {
  if (thrown === signal.reason || isPeerAway(thrown)) return true;
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
