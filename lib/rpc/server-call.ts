/**
 * One call of a method on the side that serves it, over any path but the library's own handlers.
 *
 * 1. Interceptors and implementation get what the library would give them; the implementation its message when all
 *    interceptors have let the call pass, and only then is it read.
 * 2. The signal is aborted when the deadline is over, when the caller leaves, and when the call has ended, however it
 *    does. There is one for each call, one timer where it has a deadline, and no new error where it ended well.
 */
import { create, type DescMessage, isMessage, type Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import type { RegisteredMethod } from "./registered-method.ts";

/** What a call begins with. */
export interface CallHead {
  readonly url: string;
  readonly requestMethod: string;
  /** `connect` over the wire. */
  readonly protocolName: string;
  readonly header: Headers;
  readonly timeoutMs: number | undefined;
  readonly values: ContextValues;
}

type Call = UnaryRequest | StreamRequest;
type Answer = UnaryResponse | StreamResponse;

/** Reads the message of a request; what it throws is the answer. */
export type ReadMessage = (request: Call) => Promise<Message>;

/** Why the signal of a call that ended well is aborted: one for all, since making one costs more than all else here. */
const callEnded = new DOMException("the call has ended", "AbortError");

/** A call that runs. Its owner ends it by `end` or `abort`, whatever came of it. */
export class ServerCall {
  /** Metadata of the answer. */
  readonly header = new Headers();
  readonly trailer = new Headers();
  readonly #method: RegisteredMethod;
  readonly #head: CallHead;
  readonly #controller = new AbortController();
  readonly #timeoutMs: () => number | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** Of a stream's answer, where an interceptor has put another one in its place. */
  #streamTrailer = this.trailer;

  constructor(method: RegisteredMethod, head: CallHead) {
    this.#method = method;
    this.#head = head;
    const { timeoutMs } = head;
    if (timeoutMs === undefined) {
      this.#timeoutMs = () => undefined;
      return;
    }
    const byMs = Date.now() + timeoutMs;
    this.#timeoutMs = () => byMs - Date.now();
    const expire = () => this.#controller.abort(deadlineExceeded());
    if (timeoutMs <= 0) expire();
    else this.#deadline = setTimeout(expire, timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The answer of a unary method. */
  async unary(read: ReadMessage): Promise<Message> {
    const { spec } = this.#method;
    if (spec.kind !== "unary") throw new TypeError(`${spec.method.toString()} is not unary`);
    const run = async (request: Call): Promise<Answer> => {
      const output = await spec.impl(await read(request), this.#contextOf(request)); // 1.
      const message = create(spec.method.output, output as Message);
      return { ...this.#answerHead(), stream: false, message, method: spec.method };
    };
    const message = create(spec.method.input);
    const request: UnaryRequest = {
      ...this.#requestHead(),
      stream: false,
      message,
      method: spec.method,
    };
    const answer = await this.#intercepted(run)(request);
    copyHeaders(answer.header, this.header);
    copyHeaders(answer.trailer, this.trailer);
    return answer.message as Message;
  }

  /** The messages of a server stream. */
  async stream(read: ReadMessage): Promise<AsyncIterator<Message>> {
    const { spec } = this.#method;
    if (spec.kind !== "server_streaming")
      throw new TypeError(`${spec.method.toString()} is no server stream`);
    const run = async (request: Call): Promise<Answer> => {
      const outputs = spec.impl(await read(request), this.#contextOf(request)); // 1.
      const message = asMessages(spec.method.output, outputs);
      return { ...this.#answerHead(), stream: true, message, method: spec.method };
    };
    const message = onlyEmpty(spec.method.input);
    const request: StreamRequest = { ...this.#requestHead(), stream: true, message, method: spec.method };
    const answer = (await this.#intercepted(run)(request)) as StreamResponse;
    copyHeaders(answer.header, this.header);
    this.#streamTrailer = answer.trailer;
    return answer.message[Symbol.asyncIterator]();
  }

  /** It has ended well; the trailers are whole. */
  end(): void {
    copyHeaders(this.#streamTrailer, this.trailer);
    this.abort(callEnded); // 2.
  }

  /** It has failed, or nobody waits for it any more. Later calls do nothing. */
  abort(reason: unknown): void {
    clearTimeout(this.#deadline);
    this.#controller.abort(reason);
  }

  #intercepted(run: (request: Call) => Promise<Answer>): ReturnType<Interceptor> {
    return this.#method.interceptors.reduceRight<ReturnType<Interceptor>>(
      (next, interceptor) => interceptor(next),
      run,
    );
  }

  #requestHead() {
    const { requestMethod, url, header, values } = this.#head;
    const service = this.#method.spec.method.parent;
    return { requestMethod, url, signal: this.signal, header, service, contextValues: values };
  }

  #answerHead() {
    return { service: this.#method.spec.method.parent, header: this.header, trailer: this.trailer };
  }

  /** Interceptors may have put others of these in the request's place. */
  #contextOf({ service, header, signal, contextValues }: Call): HandlerContext {
    const { requestMethod, url, protocolName } = this.#head;
    return {
      method: this.#method.spec.method,
      service,
      requestMethod,
      url,
      protocolName,
      signal,
      timeoutMs: this.#timeoutMs,
      requestHeader: header,
      responseHeader: this.header,
      responseTrailer: this.trailer,
      values: contextValues,
    };
  }
}

/** Tells who makes messages that nobody takes them any more, as the library does. */
export async function leave(messages: AsyncIterator<Message>, reason: unknown): Promise<void> {
  await messages.throw?.(reason).catch(() => undefined);
  await messages.return?.().catch(() => undefined);
}

/** The library's words. */
function deadlineExceeded(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

function copyHeaders(from: Headers, to: Headers): void {
  if (from === to) return;
  for (const name of [...to.keys()]) to.delete(name);
  from.forEach((value, name) => {
    to.set(name, value);
  });
}

/** What stands for the message of a stream's request until that is read. */
function onlyEmpty(schema: DescMessage): AsyncIterable<Message> {
  return {
    async *[Symbol.asyncIterator]() {
      yield create(schema);
    },
  };
}

/** What an implementation yields, as messages. A plain iterator: a generator would cost every frame several promises. */
function asMessages(schema: DescMessage, source: AsyncIterable<unknown>): AsyncIterable<Message> {
  const asMessage = (step: IteratorResult<unknown>): IteratorResult<Message> => {
    if (step.done || isMessage(step.value, schema)) return step as IteratorResult<Message>;
    return { done: false, value: create(schema, step.value as Message) };
  };
  const done: IteratorResult<Message> = { done: true, value: undefined };
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      return {
        next: () => iterator.next().then(asMessage),
        return: async () => (iterator.return === undefined ? done : asMessage(await iterator.return())),
        throw: async (thrown) => {
          if (iterator.throw !== undefined) return asMessage(await iterator.throw(thrown));
          await iterator.return?.();
          throw thrown;
        },
      };
    },
  };
}
