import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import type { HandlerContext, Interceptor, Transport } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import {
  audioFrame,
  audioLength,
  type SpeechServerOptions,
  speechRoutes,
  startSpeechServer,
} from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { consumeStream, createLocalTransport, createRemoteTransport, createRpcClient } from "./client.ts";
import { requestIdKey } from "./request-context.ts";

/** Runs `body` with a client over the transport, against a server or in memory. */
type WithClient = (
  handlers: NonNullable<SpeechServerOptions["handlers"]>,
  body: (transport: Transport) => Promise<void>,
) => Promise<void>;

const overSocket: WithClient = async (handlers, body) => {
  await using server = await startSpeechServer({ handlers });
  await body(createRemoteTransport({ baseUrl: server.baseUrl }));
};
const inProcess: WithClient = (handlers, body) => body(createLocalTransport(speechRoutes(handlers)));

/** Handlers that wait until their call is over, and how many still do. */
function waitingHandlers() {
  const waiting = { count: 0, aborted: 0 };
  const untilAborted = async ({ signal }: HandlerContext) => {
    waiting.count += 1;
    if (!signal.aborted) await once(signal, "abort");
    waiting.aborted += 1;
    throw signal.reason;
  };
  const handlers = {
    listSpeechModels: (_: unknown, context: HandlerContext): Promise<never> => untilAborted(context),
    async *synthesize(_: unknown, context: HandlerContext) {
      yield audioFrame(1);
      yield audioFrame(2);
      await untilAborted(context);
    },
  };
  return { waiting, handlers };
}

describe.for([
  ["over a socket", overSocket],
  ["in the process", inProcess],
] as const)("a client %s", ([, withClient]) => {
  test("gives up at its deadline and notifies the handler", async () => {
    const { waiting, handlers } = waitingHandlers();
    await withClient(handlers, async (transport) => {
      const client = createRpcClient(SpeechService, transport);
      const unary = client.listSpeechModels({}, { timeoutMs: 500 });
      await expect(unary).rejects.toMatchObject({ name: "DomainError", reason: ErrorReason.TIMED_OUT });
      const frames: number[] = [];
      const stream = (async () => {
        for await (const frame of client.synthesize({}, { timeoutMs: 500 })) frames.push(audioLength(frame));
      })();
      await expect(stream).rejects.toMatchObject({ name: "DomainError", reason: ErrorReason.TIMED_OUT });
      expect(frames).toEqual([1, 2]);
      await waitUntil(() => waiting.aborted === 2);
    });
  });

  test("abandons a call when its signal says so, and the handler learns of it", async () => {
    const { waiting, handlers } = waitingHandlers();
    await withClient(handlers, async (transport) => {
      const client = createRpcClient(SpeechService, transport);
      const controller = new AbortController();
      const unary = client
        .listSpeechModels({}, { signal: controller.signal })
        .catch((thrown: unknown) => thrown);
      await waitUntil(() => waiting.count === 1);
      controller.abort();
      expect(await unary).toMatchObject({ name: "DomainError", reason: ErrorReason.CANCELLED });
      await waitUntil(() => waiting.aborted === 1);
    });
  });

  test("ends the call when the consumer of a stream leaves early", async () => {
    const { waiting, handlers } = waitingHandlers();
    await withClient(handlers, async (transport) => {
      const client = createRpcClient(SpeechService, transport);
      const signals: AbortSignal[] = [];
      const open = (signal: AbortSignal) => {
        signals.push(signal);
        return client.synthesize({}, { signal });
      };
      for await (const frame of consumeStream(open)) {
        expect(audioLength(frame)).toBe(1);
        break;
      }
      expect(signals[0]?.aborted).toBe(true);
      await waitUntil(() => waiting.aborted === waiting.count);
    });
  });

  test("ends the call in the middle of a stream when the signal of its consumer says so", async () => {
    const { waiting, handlers } = waitingHandlers();
    await withClient(handlers, async (transport) => {
      const client = createRpcClient(SpeechService, transport);
      const controller = new AbortController();
      const frames: number[] = [];
      const consumed = (async () => {
        const stream = consumeStream((signal) => client.synthesize({}, { signal }), controller.signal);
        for await (const frame of stream) frames.push(audioLength(frame));
      })().catch((thrown: unknown) => thrown);
      await waitUntil(() => waiting.count === 1 && frames.length === 2);
      controller.abort();
      expect(await consumed).toMatchObject({ name: "DomainError", reason: ErrorReason.CANCELLED });
      await waitUntil(() => waiting.aborted === 1);
      expect(frames).toEqual([1, 2]);
    });
  });

  test("passes the id of the request that it belongs to on", async () => {
    const ids: string[] = [];
    const handlers = {
      listSpeechModels: (_: unknown, context: HandlerContext) => {
        ids.push(context.values.get(requestIdKey));
        return { models: [] };
      },
    };
    await withClient(handlers, async (transport) => {
      const { createContextValues } = await import("@connectrpc/connect");
      const contextValues = createContextValues().set(requestIdKey, "req-of-caller");
      await createRpcClient(SpeechService, transport).listSpeechModels({}, { contextValues });
      expect(ids).toEqual(["req-of-caller"]);
    });
  });
});

describe("a service that is away", () => {
  async function closedPort(): Promise<number> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    return port;
  }

  test("is SERVICE_UNAVAILABLE without its address, unary and streaming", async () => {
    const port = await closedPort();
    const client = createRpcClient(
      SpeechService,
      createRemoteTransport({ baseUrl: `http://127.0.0.1:${port}` }),
    );
    const unary = await client.listSpeechModels({}).catch((thrown: unknown) => thrown);
    const stream = await client
      .synthesize({})
      [Symbol.asyncIterator]()
      .next()
      .catch((thrown: unknown) => thrown);
    for (const thrown of [unary, stream]) {
      expect(thrown).toBeInstanceOf(DomainError);
      expect(thrown).toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
      expect((thrown as DomainError).message).not.toMatch(/127|\d{4}|ECONN/);
      expect((thrown as DomainError).toConnectError().message).not.toContain(String(port));
    }
  });

  test("is not called when an interceptor of the client refuses, whose error arrives as it was thrown", async () => {
    const refusal = new DomainError(ErrorReason.KEY_MISSING, "no key");
    const interceptors: Interceptor[] = [() => () => Promise.reject(refusal)];
    const transport = createRemoteTransport({
      baseUrl: `http://127.0.0.1:${await closedPort()}`,
      interceptors,
    });
    await expect(createRpcClient(SpeechService, transport).listSpeechModels({})).rejects.toBe(refusal);
  });

  test("is SERVICE_UNAVAILABLE when it breaks off in the middle of a stream", async () => {
    const server = await startSpeechServer({ handlers: waitingHandlers().handlers });
    const client = createRpcClient(SpeechService, createRemoteTransport({ baseUrl: server.baseUrl }));
    const frames = client.synthesize({})[Symbol.asyncIterator]();
    await frames.next();
    await frames.next();
    const next = frames.next().catch((thrown: unknown) => thrown);
    await server.drain({ delayMs: 0, timeoutMs: 0 });
    const thrown = await next;
    expect(thrown).toMatchObject({ name: "DomainError", reason: ErrorReason.SERVICE_UNAVAILABLE });
    expect((thrown as DomainError).message).not.toMatch(/socket|ECONN|hang/i);
  });

  /** A service that is there for as long as it takes to do this with each connection. */
  test.for<[string, (socket: Socket) => void]>([
    ["accepts and resets at once", (socket) => void socket.resetAndDestroy()],
    ["accepts and closes at once", (socket) => void socket.destroy()],
    ["resets when something has come", (socket) => void socket.once("data", () => socket.resetAndDestroy())],
    ["closes when something has come", (socket) => void socket.once("data", () => socket.end())],
    [
      "breaks off in a head",
      (socket) => void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncont")),
    ],
    ["speaks no HTTP", (socket) => void socket.once("data", () => socket.end("220 mail ready\r\n"))],
    ["breaks off in an answer", answering("200 OK", undefined, "content-length: 100\r\n", "\n")],
    ["breaks off in a chunk", answering("200 OK", undefined, "transfer-encoding: chunked\r\n", "5\r\n\n")],
    [
      "is a proxy that finds nobody",
      answering("502 Bad Gateway", "text/html", "content-length: 2\r\n", "no"),
    ],
    ["is a proxy with a page of its own", answering("200 OK", "text/html", "content-length: 2\r\n", "no")],
    ["is a proxy that lost its way", answering("404 Not Found", "text/html", "content-length: 2\r\n", "no")],
  ])("is SERVICE_UNAVAILABLE when it %s, unary and streaming", async ([, treat]) => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      treat(socket);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = createRpcClient(SpeechService, createRemoteTransport({ baseUrl }));
    const input = "x".repeat(900_000);
    const stream = client.synthesize({ input })[Symbol.asyncIterator]();
    const failures = [client.listSpeechModels({}), stream.next()].map((call) =>
      call.then(
        () => undefined,
        (thrown: unknown) => thrown,
      ),
    );
    for (const thrown of await Promise.all(failures)) {
      expect(thrown).toMatchObject({ name: "DomainError", reason: ErrorReason.SERVICE_UNAVAILABLE });
      expect((thrown as DomainError).message).not.toMatch(/E[A-Z]{4}|socket|127|html/);
    }
  });

  test("is SERVICE_UNAVAILABLE when its stream ends before the last message", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      answering("200 OK", "application/connect+proto", "content-length: 0\r\n", "")(socket);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = createRpcClient(SpeechService, createRemoteTransport({ baseUrl }));
    const next = client.synthesize({})[Symbol.asyncIterator]().next();
    await expect(next).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  });
});

/** Answers a request and leaves; with the content type of an answer of the service where none is given. */
function answering(status: string, contentType: string | undefined, header: string, body: string) {
  return (socket: Socket) =>
    void socket.once("data", (head) => {
      const type =
        contentType ?? (head.includes("/Synthesize") ? "application/connect+proto" : "application/proto");
      socket.end(`HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\n${header}connection: close\r\n\r\n${body}`);
    });
}
