import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { DomainError } from "../runtime/domain-error.ts";
import { codeOfReason, reasonOfCode, wordOfReason } from "../runtime/error-code.ts";
import { otherSpansKey, type Span, spanKey, traceparentHeader } from "../runtime/span.ts";
import { codeToString } from "./wire/connect-protocol.ts";

type Call = UnaryRequest | StreamRequest;

/** Client side: a span for each call that is made for a recorded span, which the called process goes on with. */
export const traceOutgoingCalls: Interceptor = (next) => (request) => {
  const parent = request.contextValues.get(spanKey);
  return parent.recording ? callWithin(parent, request, next) : next(request);
};

async function callWithin(
  parent: Span,
  request: Call,
  next: (request: Call) => Promise<UnaryResponse | StreamResponse>,
): Promise<UnaryResponse | StreamResponse> {
  const span = parent.child(nameOfCall(request), "client");
  for (const other of request.contextValues.get(otherSpansKey) ?? []) span.link(other);
  if (span.traceparent !== undefined) request.header.set(traceparentHeader, span.traceparent);
  return followCall(span, request, next, () => true);
}

/** The full name of a call's method, such as `media.usage.v1.UsageService/ListRecords`. */
export function nameOfCall({ service, method }: Pick<Call, "service" | "method">): string {
  return `${service.typeName}/${method.name}`;
}

/** Makes a call and ends its span with it: with the last message where the answer is a stream. */
export async function followCall(
  span: Span,
  request: Call,
  next: (request: Call) => Promise<UnaryResponse | StreamResponse>,
  isFault: (code: Code) => boolean,
): Promise<UnaryResponse | StreamResponse> {
  span.set({ "rpc.system.name": "connectrpc", "rpc.method": nameOfCall(request) });
  const fail = (thrown: unknown): void => endFailed(span, thrown, request.signal, isFault);
  try {
    const response = await next(request);
    if (response.stream) return followStream(span, response, request.signal, fail);
    span.end();
    return response;
  } catch (thrown) {
    fail(thrown);
    throw thrown;
  }
}

/** Only the signal shows that the consumer has left; it also fires after an end, which is recorded by then. */
function followStream(
  span: Span,
  response: StreamResponse,
  signal: AbortSignal,
  fail: (thrown: unknown) => void,
): StreamResponse {
  const source = response.message[Symbol.asyncIterator]();
  const onAbort = () => fail(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  const end = () => {
    signal.removeEventListener("abort", onAbort);
    span.end();
  };
  const received = (result: IteratorResult<Message>): IteratorResult<Message> => {
    if (result.done) end();
    return result;
  };
  const failed = (thrown: unknown): never => {
    fail(thrown);
    throw thrown;
  };
  const message: AsyncIterableIterator<Message> = {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => source.next().then(received, failed),
    return: async () => {
      end();
      return (await source.return?.()) ?? { done: true, value: undefined };
    },
    throw: async (thrown) => {
      fail(thrown);
      if (source.throw === undefined) throw thrown;
      return source.throw(thrown);
    },
  };
  return { ...response, message };
}

function endFailed(span: Span, thrown: unknown, signal: AbortSignal, isFault: (code: Code) => boolean): void {
  const code = codeOf(thrown, signal);
  const isOver = code === Code.Canceled || code === Code.DeadlineExceeded;
  const reason = isOver ? reasonOfCode(code) : DomainError.from(thrown).reason;
  span.set({ "rpc.status_code": codeToString(code) });
  span.end(wordOfReason(reason), code !== Code.Canceled && isFault(code));
}

function codeOf(thrown: unknown, signal: AbortSignal): Code {
  if (signal.aborted) {
    const { reason } = signal;
    const isLate = reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
    return isLate ? Code.DeadlineExceeded : Code.Canceled;
  }
  return codeOfReason(DomainError.from(thrown).reason);
}
