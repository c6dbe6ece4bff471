/**
 * What direct-handler.ts answers, byte for byte beside what the library answers to the same request on the same port. A
 * word of compression in the request's head leaves a call to the library.
 */
import { connect as connectHttp2 } from "node:http2";
import { create, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorDetailSchema, ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  ListSpeechModelsRequestSchema,
  type ListSpeechModelsResponseSchema,
  SynthesizeRequestSchema,
  SynthesizeResponseSchema,
} from "../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { bodyOf, nameOfWire, openCall, type RpcWire, rpcWires } from "../../test/support/rpc-wire.ts";
import { type SpeechServer, startSpeechServer } from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { silentLog } from "../runtime/log.ts";
import { serverInterceptor } from "./interceptors.ts";
import { requestIdKey } from "./request-context.ts";

const { listSpeechModels, synthesize } = SpeechService.method;
const writeMaxBytes = 100_000;

type Models = MessageInitShape<typeof ListSpeechModelsResponseSchema>;
type Frame = MessageInitShape<typeof SynthesizeResponseSchema>;

/** What handlers do, by name; a request's header says which. */
interface Script {
  readonly list?: (context: HandlerContext) => Models | Promise<Models>;
  readonly speak?: (context: HandlerContext) => AsyncGenerator<Frame>;
}

const audio = (length: number): Frame => ({
  frame: { case: "audio", value: new Uint8Array(length).fill(7) },
});
const finished: Frame = { frame: { case: "finished", value: { inputCharacters: 3n } } };
const codes = Object.values(Code).filter((code) => typeof code === "number");

function failure(code: Code): ConnectError {
  const detail = { desc: ErrorDetailSchema, value: { reason: ErrorReason.TIMED_OUT } };
  const metadata = { "x-why": "late, very", "x-raw-bin": "AAEC", "content-type": "text/plain" };
  return new ConnectError(`failed: Grüße ${code}`, code, metadata, [detail, detail]);
}

function wireError(): ConnectError {
  const error = failure(Code.NotFound);
  error.isWireError = true;
  return error;
}

function mark({ responseHeader, responseTrailer }: HandlerContext): void {
  responseHeader.append("x-list", "a");
  responseHeader.append("x-list", "b");
  responseHeader.append("set-cookie", "a=1");
  responseHeader.append("set-cookie", "b=2");
  responseTrailer.append("x-last", "c");
  responseTrailer.append("x-last", "d");
  responseTrailer.set("x-other", "é");
}

const endOf = ({ signal }: HandlerContext) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** Both methods throw it, one of them after a frame, too. */
const throwing = (make: () => unknown): Script => ({
  list(context) {
    mark(context);
    throw make();
  },
  async *speak(context) {
    mark(context);
    if (context.requestHeader.has("x-frame-first")) yield audio(3);
    throw make();
  },
});

const scripts: Readonly<Record<string, Script>> = {
  nothing: { list: () => ({}), async *speak() {} },
  metadata: {
    list(context) {
      mark(context);
      return { models: [{ id: "acme/one" }] };
    },
    async *speak(context) {
      mark(context);
      yield audio(5);
      context.responseTrailer.set("x-late", "yes");
    },
  },
  frames: {
    list: () => ({ models: Array.from({ length: 50 }, (_, index) => ({ id: `acme/${index}` })) }),
    async *speak() {
      for (const length of [0, 1, 127, 128, 1024, 16_383, 16_384, 70_000, 99_000]) yield audio(length);
      yield {};
      yield create(SynthesizeResponseSchema, finished);
      const extended = create(SynthesizeResponseSchema, audio(4));
      extended.$unknown = [{ no: 99, wireType: 0, data: Uint8Array.of(1) }];
      yield extended;
    },
  },
  "the largest message": {
    list: () => ({ models: [{ id: "x".repeat(writeMaxBytes - 8) }] }),
    async *speak() {
      yield audio(writeMaxBytes - 4);
    },
  },
  "a message too large": {
    list: () => ({ models: [{ id: "x".repeat(writeMaxBytes) }] }),
    async *speak() {
      yield audio(1);
      yield audio(writeMaxBytes - 3);
    },
  },
  "a message too large that is no audio": {
    async *speak() {
      yield { frame: { case: "started", value: { generationId: "x".repeat(writeMaxBytes) } } };
    },
  },
  "what can't be encoded": {
    list: () => ({ models: [{ id: 5 as unknown as string }] }),
    async *speak() {
      yield { frame: { case: "audio", value: "text" as unknown as Uint8Array<ArrayBuffer> } };
    },
  },
  ...Object.fromEntries(codes.map((code) => [`code ${Code[code]}`, throwing(() => failure(code))])),
  "an error from the wire": throwing(wireError),
  "a bug": throwing(() => new TypeError("secret")),
  "no error": throwing(() => "thrown text"),
  "our error": throwing(() => new DomainError(ErrorReason.RATE_LIMITED, "slowly", { retryAfterMs: 1500 })),
  "the deadline": {
    list: endOf,
    async *speak(context) {
      yield audio(1);
      await endOf(context);
    },
  },
};

/** Puts others in the place of all that may be replaced. */
const replaced: Interceptor = (next) => async (request) => {
  const header = new Headers(request.header);
  header.set("x-seen", "yes");
  const response = await next({ ...request, header });
  response.trailer.set("x-added", "yes");
  return { ...response, header: new Headers(response.header) };
};

const interceptorSets: Readonly<Record<string, readonly Interceptor[]>> = {
  none: [],
  ours: [serverInterceptor(silentLog)],
  "ours, and one that replaces": [serverInterceptor(silentLog), replaced],
};

function scriptOf({ requestHeader }: HandlerContext): Script {
  return scripts[requestHeader.get("x-script") ?? ""] ?? {};
}

function start(interceptors: readonly Interceptor[]): Promise<SpeechServer> {
  return startSpeechServer({
    limits: { readMaxBytes: 1 << 20, writeMaxBytes },
    bodyTimeoutMs: 300,
    routes: (router) =>
      router.service(
        SpeechService,
        {
          listSpeechModels: (_request, context) => scriptOf(context).list?.(context) ?? {},
          async *synthesize(_request, context) {
            yield* scriptOf(context).speak?.(context) ?? [];
          },
        },
        { interceptors: [...interceptors] },
      ),
  });
}

const wires = rpcWires.filter(({ protocol, codec }) => protocol === "connect" && codec === "proto");
const methods: readonly DescMethod[] = [listSpeechModels, synthesize];
const stockHeader = (method: DescMethod) =>
  method.methodKind === "unary" ? "accept-encoding" : "connect-accept-encoding";

type HeaderLines = Readonly<Record<string, string>>;

describe.for(Object.entries(interceptorSets))("with interceptors: %s", ([, interceptors]) => {
  let server: SpeechServer;
  beforeAll(async () => {
    server = await start(interceptors);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  /** The answers of both, but for their dates and for how a stream is framed, which is one end of a chunk or another. */
  async function answers(
    wire: RpcWire,
    method: DescMethod,
    headers: HeaderLines,
    body?: Uint8Array,
    end = true,
  ) {
    const plain = { "x-request-id": "asked", ...headers };
    const asked = [plain, { ...plain, [stockHeader(method)]: "identity" }].map(async (all) => {
      const call = openCall(server.baseUrl, wire, method, all);
      if (body !== undefined && body.length > 0) call.write(body);
      if (end) call.end();
      const { status, headers, body: answer } = await call.answer.finally(() => end || call.cut());
      const { date, ...rest } = { ...headers };
      expect(date).toEqual(expect.any(String));
      if (method.methodKind !== "unary") {
        delete rest["content-length"];
        delete rest["transfer-encoding"];
      }
      return { status, headers: rest, body: answer.toString("latin1") };
    });
    return await Promise.all(asked);
  }

  const schemas = new Map<DescMethod, Uint8Array>([
    [listSpeechModels, toBinary(ListSpeechModelsRequestSchema, create(ListSpeechModelsRequestSchema))],
    [synthesize, toBinary(SynthesizeRequestSchema, create(SynthesizeRequestSchema, { input: "Hello" }))],
  ]);

  describe.for(wires.map((wire) => [nameOfWire(wire), wire] as const))("%s", ([, wire]) => {
    test.for(Object.keys(scripts))("%s", async (script) => {
      for (const method of methods) {
        const body = bodyOf(wire, method, schemas.get(method) ?? new Uint8Array(0));
        for (const more of [{}, { "x-frame-first": "1" }]) {
          const deadline = script === "the deadline" ? { "connect-timeout-ms": "50" } : {};
          const headers = { "x-script": script, ...more, ...deadline };
          const [ours, library] = await answers(wire, method, headers, body);
          expect(ours, method.name).toEqual(library);
        }
      }
    });

    test.for(["", "0", "-1", "1.5", "99999999999", "900001", "1s", "60000"])(
      "a deadline of %j",
      async (timeout) => {
        for (const method of methods) {
          const body = bodyOf(wire, method, schemas.get(method) ?? new Uint8Array(0));
          const headers = { "x-script": "metadata", "connect-timeout-ms": timeout };
          const [ours, library] = await answers(wire, method, headers, body);
          expect(ours, method.name).toEqual(library);
        }
      },
    );

    const message = bodyOf(wires[0] as RpcWire, synthesize, Buffer.from("0a0141", "hex"));
    test.for<[name: string, body: Buffer, headers?: HeaderLines]>([
      ["empty", Buffer.alloc(0)],
      ["cut in its head", message.subarray(0, 3)],
      ["cut in its message", message.subarray(0, -1)],
      ["two messages", Buffer.concat([message, message])],
      ["an unknown flag", Buffer.concat([Buffer.of(4), message.subarray(1)])],
      ["an end of stream", Buffer.concat([Buffer.of(2), message.subarray(1)])],
      ["said to be compressed", Buffer.concat([Buffer.of(1), message.subarray(1)])],
      ["no message of its type", bodyOf(wires[0] as RpcWire, synthesize, Buffer.from("0a05", "hex"))],
      ["larger than its method takes", Buffer.from("00ffffffff", "hex")],
      ["more than its method takes", bodyOf(wires[0] as RpcWire, synthesize, Buffer.alloc((1 << 20) + 1))],
    ])("a body that is %s", async ([, body, headers = {}]) => {
      for (const method of methods) {
        const [ours, library] = await answers(wire, method, { "x-script": "metadata", ...headers }, body);
        expect(ours, method.name).toEqual(library);
      }
    });

    test("a body that is announced too large, or doesn't come to its end", async () => {
      for (const method of methods) {
        const large = { "content-length": String((1 << 20) + 6) };
        const [ours, library] = await answers(wire, method, large, message, false);
        expect(ours, method.name).toEqual(library);
        const [late, lateToo] = await answers(wire, method, {}, message.subarray(0, 4), false);
        expect(late, method.name).toEqual(lateToo);
      }
    });
  });
});

/** All but what says which path a call takes. */
function linesOf(header: Headers): string[] {
  const lines = [...header].map(([name, value]) => `${name}: ${value}`);
  return lines.filter((line) => !line.includes("accept-encoding"));
}

/** What interceptors and handlers learn of calls, by the path that these took. */
class Observer {
  readonly seen: Record<"direct" | "library", unknown[]> = { direct: [], library: [] };

  readonly interceptor: Interceptor = (next) => (request) => {
    const { stream, header, signal, contextValues, method, service, url, requestMethod } = request;
    this.#of(header).push(
      { stream, url, requestMethod, method: method.name, service: service.typeName },
      { header: linesOf(header), aborted: signal.aborted, id: contextValues.get(requestIdKey) },
    );
    return next(request);
  };

  observe(context: HandlerContext): void {
    const { method, service, url, requestMethod, protocolName, requestHeader, values, signal } = context;
    const seen = this.#of(requestHeader);
    const leftMs = context.timeoutMs() ?? 0;
    seen.push(
      { url, requestMethod, protocolName, method: method.name, service: service.typeName },
      { header: linesOf(requestHeader), aborted: signal.aborted, id: values.get(requestIdKey) },
      { answer: linesOf(context.responseHeader), trailer: linesOf(context.responseTrailer) },
      { hasTime: leftMs > 0 && leftMs <= 60_000 },
    );
    signal.addEventListener("abort", () => seen.push((signal.reason as Error).name), { once: true });
  }

  #of(header: Headers): unknown[] {
    const isLibrary = header.has("accept-encoding") || header.has("connect-accept-encoding");
    return this.seen[isLibrary ? "library" : "direct"];
  }
}

test.for(wires.map((wire) => [nameOfWire(wire), wire] as const))(
  "a call shows itself alike on either path: %s",
  async ([, wire]) => {
    const observer = new Observer();
    await using server = await startSpeechServer({
      routes: (router) =>
        router.service(
          SpeechService,
          {
            listSpeechModels(_request, context) {
              observer.observe(context);
              return {};
            },
            async *synthesize(_request, context) {
              observer.observe(context);
              yield audio(1);
            },
          },
          { interceptors: [observer.interceptor] },
        ),
    });
    const session = connectHttp2(server.baseUrl);
    for (const method of methods) {
      for (const more of [{}, { [stockHeader(method)]: "identity" }]) {
        const headers = { host: "media.test", "x-request-id": "asked", "x-more": "a, b" };
        const all = { ...headers, "connect-timeout-ms": "60000", ...more };
        const call = openCall(server.baseUrl, wire, method, all, session);
        call.write(bodyOf(wire, method, Buffer.alloc(0)));
        call.end();
        expect((await call.answer).code).toBeUndefined();
      }
    }
    session.destroy();
    await waitUntil(() => Object.values(observer.seen).every(({ length }) => length === 14));
    expect(observer.seen.direct).toEqual(observer.seen.library);
    expect(observer.seen.direct.at(-1)).toBe("AbortError");
  },
);
