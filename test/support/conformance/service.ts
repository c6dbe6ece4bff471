/**
 * The service that the conformance suite of the Connect protocols calls: it answers as each request asks, and tells what
 * it was asked. Source: connectrpc/conformance/v1/service.proto.
 */
import { setTimeout as pause } from "node:timers/promises";
import { create, type DescMessage, type DescService, type Message, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError, type HandlerContext } from "@connectrpc/connect";

interface Header {
  readonly name: string;
  readonly value: readonly string[];
}

interface Failure {
  readonly code: Code;
  readonly message?: string;
  readonly details: readonly Any[];
}

interface Definition {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
  readonly responseDelayMs: number;
}

interface UnaryDefinition extends Definition {
  readonly response:
    | { readonly case: "responseData"; readonly value: Uint8Array }
    | { readonly case: "error"; readonly value: Failure }
    | { readonly case: undefined };
}

interface StreamDefinition extends Definition {
  readonly responseData: readonly Uint8Array[];
  readonly error?: Failure;
}

type Asked<D> = Message & { readonly responseDefinition?: D; readonly fullDuplex?: boolean };

/** Handlers of the service, which is known only by its descriptors. */
export function conformanceHandlers(service: DescService): Readonly<Record<string, unknown>> {
  const answers = new Answers(service);
  const unary = (request: Asked<UnaryDefinition>, context: HandlerContext) =>
    answers.unary([request], context);
  return {
    unary,
    idempotentUnary: unary,
    async clientStream(requests: AsyncIterable<Asked<UnaryDefinition>>, context: HandlerContext) {
      return await answers.unary(await Array.fromAsync(requests), context);
    },
    serverStream: (request: Asked<StreamDefinition>, context: HandlerContext) =>
      answers.stream([request], context),
    bidiStream: (requests: AsyncIterable<Asked<StreamDefinition>>, context: HandlerContext) =>
      answers.bidi(requests, context),
  };
}

class Answers {
  readonly #service: DescService;
  readonly #requestInfo: DescMessage;

  constructor(service: DescService) {
    this.#service = service;
    const payload = service.method.unary?.output.field.payload?.message;
    const requestInfo = payload?.field.requestInfo?.message;
    if (requestInfo === undefined || requestInfo === null) throw new TypeError("unknown descriptors");
    this.#requestInfo = requestInfo;
  }

  async unary(requests: readonly Asked<UnaryDefinition>[], context: HandlerContext): Promise<object> {
    const definition = requests[0]?.responseDefinition;
    begin(definition, context);
    await pause(definition?.responseDelayMs ?? 0);
    const info = this.#infoOf(requests, context);
    if (definition?.response.case === "error") throw this.#errorOf(definition.response.value, info);
    const data = definition?.response.case === "responseData" ? definition.response.value : undefined;
    return { payload: { ...(data && { data }), requestInfo: info } };
  }

  async *stream(requests: readonly Asked<StreamDefinition>[], context: HandlerContext) {
    const definition = requests[0]?.responseDefinition;
    begin(definition, context);
    let info: Message | undefined = this.#infoOf(requests, context);
    for (const data of definition?.responseData ?? []) {
      await pause(definition?.responseDelayMs ?? 0);
      yield { payload: { data, ...(info && { requestInfo: info }) } };
      info = undefined;
    }
    if (definition?.error !== undefined) throw this.#errorOf(definition.error, info);
  }

  async *bidi(requests: AsyncIterable<Asked<StreamDefinition>>, context: HandlerContext) {
    const come = requests[Symbol.asyncIterator]();
    const first = await come.next();
    if (first.done) return;
    if (first.value.fullDuplex !== true) {
      const all = [first.value];
      for (let step = await come.next(); !step.done; step = await come.next()) all.push(step.value);
      yield* this.stream(all, context);
      return;
    }
    yield* this.#duplex(first.value, come, context);
  }

  /** An answer to each request as it comes; what is left of them follows when there are no more. */
  async *#duplex(
    first: Asked<StreamDefinition>,
    come: AsyncIterator<Asked<StreamDefinition>>,
    context: HandlerContext,
  ) {
    const definition = first.responseDefinition;
    begin(definition, context);
    let unanswered: Asked<StreamDefinition>[] = [first];
    let hasAnswered = false;
    let hasEnded = false;
    for (const data of definition?.responseData ?? []) {
      if (hasAnswered && !hasEnded) {
        const step = await come.next();
        if (step.done) hasEnded = true;
        else unanswered.push(step.value);
      }
      await pause(definition?.responseDelayMs ?? 0);
      const info = this.#infoOf(unanswered, context);
      const isNews = !hasAnswered || unanswered.length > 0;
      yield { payload: { data, ...(isNews && { requestInfo: info }) } };
      unanswered = [];
      hasAnswered = true;
    }
    if (definition?.error !== undefined) {
      throw this.#errorOf(definition.error, hasAnswered ? undefined : this.#infoOf(unanswered, context));
    }
    for (let step = await come.next(); !step.done; step = await come.next());
  }

  #infoOf(requests: readonly Message[], context: HandlerContext): Message {
    const types = new Map(this.#service.methods.map(({ input }) => [input.typeName, input]));
    const leftMs = context.timeoutMs();
    const query = context.requestMethod === "GET" ? new URL(context.url).searchParams : undefined;
    return create(this.#requestInfo, {
      requestHeaders: linesOf(context.requestHeader),
      requests: requests.map((request) => {
        const type = types.get(request.$typeName);
        return type === undefined ? create(AnySchema) : anyPack(type, request);
      }),
      ...(leftMs !== undefined && { timeoutMs: BigInt(Math.max(0, Math.round(leftMs))) }),
      ...(query && { connectGetInfo: { queryParams: linesOf(query) } }),
    });
  }

  #errorOf({ code, message, details }: Failure, info: Message | undefined): ConnectError {
    const error = new ConnectError(message ?? "", code);
    for (const { typeUrl, value } of details) error.details.push({ type: typeOf(typeUrl), value });
    if (info !== undefined) {
      error.details.push({ type: info.$typeName, value: toBinary(this.#requestInfo, info) });
    }
    return error;
  }
}

function begin(definition: Definition | undefined, context: HandlerContext): void {
  const { responseHeaders = [], responseTrailers = [] } = definition ?? {};
  for (const [lines, into] of [
    [responseHeaders, context.responseHeader],
    [responseTrailers, context.responseTrailer],
  ] as const) {
    for (const { name, value } of lines) for (const each of value) into.append(name, each);
  }
}

function linesOf(entries: Iterable<[string, string]>): Header[] {
  return [...entries].map(([name, value]) => ({ name, value: [value] }));
}

function typeOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
}
