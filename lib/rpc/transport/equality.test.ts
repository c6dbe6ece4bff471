/** Calls are the same to both sides, whoever makes them and over whatever they go: the stock pair says what is right. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createClient,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { audioFrame, audioLength, startSpeechServer } from "../../../test/support/services/speech-server.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { createLocalTransport, createRemoteTransport } from "../client.ts";

type Handlers = Partial<ServiceImpl<typeof SpeechService>>;
type Options = { interceptors?: Interceptor[]; serverInterceptors?: Interceptor[] };
/** Makes a transport to a service with these handlers. */
type Pair = (handlers: Handlers, options?: Options) => Promise<Transport>;

const limits = { readMaxBytes: 1 << 20, writeMaxBytes: 1 << 20 };
const routesOf = (handlers: Handlers, interceptors: Interceptor[]) => (router: ConnectRouter) =>
  router.service(SpeechService, handlers, { interceptors });

const clients = {
  stock: (baseUrl: string, interceptors: Interceptor[]) =>
    createConnectTransport({
      baseUrl,
      httpVersion: "1.1",
      acceptCompression: [],
      defaultTimeoutMs: 5000,
      interceptors,
      ...limits,
    }),
  direct: (baseUrl: string, interceptors: Interceptor[]) => createRemoteTransport({ baseUrl, interceptors }),
};
const servers = {
  async stock(routes: (router: ConnectRouter) => void) {
    const server = createServer(connectNodeAdapter({ routes, ...limits })).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
  async direct(routes: (router: ConnectRouter) => void) {
    const server = await startSpeechServer({ routes });
    onTestFinished(() => server[Symbol.asyncDispose]());
    return server.baseUrl;
  },
};

const over =
  (client: keyof typeof clients, server: keyof typeof servers): Pair =>
  async (handlers, { interceptors = [], serverInterceptors = [] } = {}) =>
    clients[client](await servers[server](routesOf(handlers, serverInterceptors)), interceptors);
const stockPair = over("stock", "stock");
const inProcess: Pair = async (handlers, { interceptors = [], serverInterceptors = [] } = {}) =>
  createLocalTransport(routesOf(handlers, serverInterceptors), { interceptors });
const overTheWire = [
  ["direct client, stock server", over("direct", "stock")],
  ["stock client, direct server", over("stock", "direct")],
  ["direct client, direct server", over("direct", "direct")],
] as const;
const pairs: readonly (readonly [string, Pair])[] = [...overTheWire, ["in process", inProcess]];

/** What a caller can see of a call. */
async function outcomeOf(
  transport: Transport,
  kind: "unary" | "stream",
  headers: Record<string, string> = {},
) {
  const client = createClient(SpeechService, transport);
  const seen = { header: {}, trailer: {}, messages: [] as unknown[], error: undefined as unknown };
  const options = {
    headers,
    onHeader: (header: Headers) => void Object.assign(seen.header, own(header)),
    onTrailer: (trailer: Headers) => void Object.assign(seen.trailer, own(trailer)),
  };
  try {
    if (kind === "unary") seen.messages.push(await client.listSpeechModels({}, options));
    else
      for await (const message of client.synthesize({ input: "words" }, options)) seen.messages.push(message);
  } catch (thrown) {
    const { code, rawMessage, details, metadata, isWireError } = thrown as ConnectError & {
      isWireError: boolean;
    };
    seen.error = { code, rawMessage, details, isWireError, metadata: own(metadata) };
  }
  return seen;
}

/** What handlers of these tests have set. */
function own(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith("x-own-")));
}

const allCodes = Object.values(Code).filter((code) => typeof code === "number");

function errorOf(code: Code): ConnectError {
  const error = new ConnectError(`ended: ${Code[code]} – ümlaut`, code, { "x-own-meta": "of the error" });
  const value = create(ErrorDetailSchema, { reason: ErrorReason.RATE_LIMITED, retryAfterMs: 7n });
  error.details.push({ desc: ErrorDetailSchema, value });
  return error;
}

/** What a handler may do, by name. */
const endings: Readonly<Record<string, () => void>> = {
  well: () => undefined,
  "with a plain error": () => {
    throw new Error("the secret of the server");
  },
  "with no error at all": () => {
    throw "a text";
  },
  "with an error without words": () => {
    throw new ConnectError("", Code.NotFound);
  },
  "with an error that came over a wire": () => {
    throw Object.assign(errorOf(Code.NotFound), { isWireError: true });
  },
  ...Object.fromEntries(
    allCodes.map((code) => [
      `with ${Code[code]}`,
      () => {
        throw errorOf(code);
      },
    ]),
  ),
};

/** Handlers that do what the request's headers say. */
const scripted: Handlers = {
  listSpeechModels(_, context) {
    announce(context);
    return { models: [{ id: "acme/one", name: "One" }, { id: "ünlaut/zwei" }] };
  },
  async *synthesize(_, context) {
    const frames = Number(context.requestHeader.get("x-frames"));
    context.responseHeader.set("x-own-head", "yes");
    for (let index = 0; index < frames; index += 1) yield audioFrame(index * 300_000);
    announce(context);
  },
};

function announce({ requestHeader, responseHeader, responseTrailer }: HandlerContext): void {
  responseHeader.set("x-own-head", "yes");
  responseTrailer.set("x-own-trailer", "last");
  endings[requestHeader.get("x-ending") ?? "well"]?.();
}

describe.for(pairs)("%s", ([, pair]) => {
  test.for(Object.keys(endings))("a unary call that ends %s", async (ending) => {
    const headers = { "x-ending": ending };
    const expected = await outcomeOf(await stockPair(scripted), "unary", headers);
    expect(await outcomeOf(await pair(scripted), "unary", headers)).toEqual(expected);
    expect(JSON.stringify(expected.error ?? "")).not.toContain("secret");
  });

  test.for(Object.keys(endings))("a stream that ends %s, empty or after frames", async (ending) => {
    for (const frames of ["0", "3"]) {
      const headers = { "x-ending": ending, "x-frames": frames };
      const expected = await outcomeOf(await stockPair(scripted), "stream", headers);
      expect(expected.messages).toHaveLength(Number(frames));
      const outcome = await outcomeOf(await pair(scripted), "stream", headers);
      expect(plain(outcome)).toEqual(plain(expected));
    }
  });

  test("an RPC that nobody registered", async () => {
    for (const kind of ["unary", "stream"] as const) {
      const withNone = await outcomeOf(await pair({}), kind);
      expect(withNone).toMatchObject({ messages: [], error: { code: Code.Unimplemented } });
    }
  });

  test("interceptors of both sides, in the same order, each of which sees the other's headers", async () => {
    const orderOf = async (make: Pair) => {
      const order: string[] = [];
      const noting =
        (name: string): Interceptor =>
        (next) =>
        async (request) => {
          order.push(`${name}: ${request.stream ? "stream" : "unary"} ${request.header.get("x-by") ?? ""}`);
          request.header.append("x-by", name);
          const response = await next(request);
          response.header.append("x-own-by", name);
          order.push(`${name}: ${response.header.get("x-own-by")}`);
          return response;
        };
      const options = {
        interceptors: [noting("first"), noting("second")],
        serverInterceptors: [noting("third"), noting("fourth")],
      };
      const transport = await make(scripted, options);
      for (const kind of ["unary", "stream"] as const) {
        order.push(JSON.stringify(plain(await outcomeOf(transport, kind, { "x-frames": "1" }))));
      }
      return order;
    };
    expect(await orderOf(pair)).toEqual(await orderOf(stockPair));
  });

  test("a deadline is told to the handler and ends the call of both", async () => {
    const { handlers, state } = waitingHandlers();
    const client = createClient(SpeechService, await pair(handlers));
    const late = { code: Code.DeadlineExceeded };
    await expect(client.listSpeechModels({}, { timeoutMs: 300 })).rejects.toMatchObject(late);
    const stream = client.synthesize({}, { timeoutMs: 300 })[Symbol.asyncIterator]();
    expect(audioLength((await stream.next()).value)).toBe(1);
    await expect(stream.next()).rejects.toMatchObject(late);
    await waitUntil(() => state.ended === 2);
    for (const leftMs of state.leftMs) {
      expect(leftMs).toBeGreaterThan(0);
      expect(leftMs).toBeLessThanOrEqual(300);
    }
  });

  test("a caller who cancels is gone for the handler", async () => {
    const { handlers, state } = waitingHandlers();
    const client = createClient(SpeechService, await pair(handlers));
    const controller = new AbortController();
    const gone = { code: Code.Canceled };
    const unary = client.listSpeechModels({}, { signal: controller.signal });
    const stream = client.synthesize({}, { signal: controller.signal })[Symbol.asyncIterator]();
    expect(audioLength((await stream.next()).value)).toBe(1);
    const next = stream.next();
    await waitUntil(() => state.begun === 2);
    controller.abort();
    await expect(unary).rejects.toMatchObject(gone);
    await expect(next).rejects.toMatchObject(gone);
    await waitUntil(() => state.ended === 2);
    await expect(client.listSpeechModels({}, { signal: controller.signal })).rejects.toMatchObject(gone);
    expect(state.begun).toBe(2);
  });

  test("a reader who stops holds the handler back, and gets all of it in order when it goes on", async () => {
    const frames = 60;
    let made = 0;
    const handlers: Handlers = {
      async *synthesize() {
        for (; made < frames; made += 1) yield audioFrame(500_000 + made);
      },
    };
    const stream = createClient(SpeechService, await pair(handlers))
      .synthesize({})
      [Symbol.asyncIterator]();
    const lengths = [audioLength((await stream.next()).value)];
    let before = -1;
    await waitUntil(() => {
      const still = before === made;
      before = made;
      return still;
    });
    expect(made).toBeLessThan(frames);
    for (let step = await stream.next(); !step.done; step = await stream.next())
      lengths.push(audioLength(step.value));
    expect(lengths).toEqual(Array.from({ length: frames }, (_, index) => 500_000 + index));
  });
});

/** Bytes compare as bytes, whatever kind of array they are. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, part) =>
      part instanceof Uint8Array
        ? [...part.subarray(0, 9), part.length]
        : typeof part === "bigint"
          ? String(part)
          : part,
    ),
  );
}

/** Handlers that wait until their call is over; a stream after a frame. */
function waitingHandlers() {
  const state = { begun: 0, ended: 0, leftMs: [] as (number | undefined)[] };
  const wait = async (context: HandlerContext): Promise<never> => {
    state.begun += 1;
    state.leftMs.push(context.timeoutMs());
    if (!context.signal.aborted) await once(context.signal, "abort");
    state.ended += 1;
    throw context.signal.reason;
  };
  const handlers: Handlers = {
    listSpeechModels: (_, context) => wait(context),
    async *synthesize(_, context) {
      yield audioFrame(1);
      await wait(context);
    },
  };
  return { state, handlers };
}

describe.for(overTheWire)("%s", ([, pair]) => {
  const large = "x".repeat((1 << 20) + 1);

  test("a request that is too large for its sender", async () => {
    const errorOver = async (make: Pair) => {
      const client = createClient(SpeechService, await make(scripted));
      const { code, rawMessage } = await failureOf(
        client.synthesize({ input: large })[Symbol.asyncIterator]().next(),
      );
      return { code, rawMessage };
    };
    expect(await errorOver(pair)).toEqual(await errorOver(stockPair));
  });

  test("answers that are too large for their receiver, or their sender", async () => {
    const handlers: Handlers = {
      listSpeechModels: () => ({ models: [{ id: large }] }),
      async *synthesize() {
        yield audioFrame(1);
        yield audioFrame(1 << 20);
      },
    };
    const errorsOver = async (make: Pair) => {
      const transport = await make(handlers);
      const outcomes = [await outcomeOf(transport, "unary"), await outcomeOf(transport, "stream")];
      return plain(outcomes);
    };
    expect(await errorsOver(pair)).toEqual(await errorsOver(stockPair));
  });

  test("a deadline that the server alone knows is its answer", async () => {
    const { handlers } = waitingHandlers();
    const shorter: Interceptor = (next) => (request) => {
      request.header.set("connect-timeout-ms", "50");
      return next(request);
    };
    const transport = await pair(handlers, { interceptors: [shorter] });
    const error = { code: Code.DeadlineExceeded, isWireError: true };
    expect(await outcomeOf(transport, "unary")).toMatchObject({ error });
    expect(await outcomeOf(transport, "stream")).toMatchObject({ messages: [{}], error });
  });
});

async function failureOf(promise: Promise<unknown>): Promise<ConnectError> {
  return promise.then(
    () => expect.unreachable(),
    (thrown: ConnectError) => thrown,
  );
}
