import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { connect as connectHttp2, constants } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { credentials, Client as GrpcClient } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { ListSpeechModelsResponseSchema } from "../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import {
  audioFrame,
  audioLength,
  type SpeechServer,
  startSpeechServer,
  stockTransport,
  transportNames,
} from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createRemoteTransport, createRpcClient } from "./client.ts";

/** A stream of three frames that stops after the first one until the gate opens. */
function gatedStream() {
  const gate = Promise.withResolvers<void>();
  const handlers = {
    async *synthesize() {
      yield audioFrame(1);
      await gate.promise;
      yield audioFrame(2);
      yield audioFrame(3);
    },
  };
  return { open: gate.resolve, handlers };
}

describe("draining", () => {
  test("lets a running stream of each transport finish, and ends when the last one has", async () => {
    const stream = gatedStream();
    const server = await startSpeechServer({ handlers: stream.handlers });
    const running = transportNames.map((name) => {
      const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
      return { client, frames: client.synthesize({})[Symbol.asyncIterator]() };
    });
    for (const { frames } of running) expect((await frames.next()).done).toBe(false);

    let drained = false;
    const drain = server.drain({ delayMs: 0, timeoutMs: 60_000 }).then(() => {
      drained = true;
    });
    for (const { client } of running) {
      await expect(client.listSpeechModels({})).rejects.toMatchObject({ code: Code.Unavailable });
    }
    expect(drained).toBe(false);
    stream.open();
    for (const { frames } of running) {
      const rest = [await frames.next(), await frames.next()].map(({ value }) => value && audioLength(value));
      expect(rest).toEqual([2, 3]);
      expect((await frames.next()).done).toBe(true);
    }
    await drain;
  });

  test("cuts what still runs at its limit", async () => {
    const server = await startSpeechServer({ handlers: gatedStream().handlers });
    const running = transportNames.map((name) => {
      const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
      return client.synthesize({})[Symbol.asyncIterator]();
    });
    for (const frames of running) await frames.next();
    await server.drain({ delayMs: 0, timeoutMs: 30 });
    for (const frames of running) await expect(frames.next()).rejects.toThrow();
  });

  test("serves during its delay, says that it is not ready and asks clients to leave", async () => {
    const server = await startSpeechServer();
    const agent = new Agent({ keepAlive: true });
    const client = createClient(SpeechService, stockTransport("gRPC", server.baseUrl));
    expect(await get(`${server.baseUrl}/readyz`, agent)).toEqual({ status: 200, connection: "keep-alive" });

    let drained = false;
    const delay = Promise.withResolvers<void>();
    const drain = server.drain({ delayMs: 300, timeoutMs: 60_000 }).then(() => {
      drained = true;
      delay.resolve();
    });
    expect(await get(`${server.baseUrl}/readyz`, agent)).toEqual({ status: 503, connection: "close" });
    expect((await client.listSpeechModels({})).models).toHaveLength(1);
    expect(drained).toBe(false);
    await drain;
    await expect(get(`${server.baseUrl}/readyz`, agent)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test.for([
    ["Connect over HTTP/1.1", connectCaller],
    ["gRPC, by a client that calls again what was refused", grpcCaller],
  ] as const)("loses no call of clients that only know an address (%s)", async ([, createCaller]) => {
    const servers = [await startSpeechServer(), await startSpeechServer()] as const;
    let current: SpeechServer = servers[0];
    await using proxy = await startPortProxy(() => current.port);
    const { call, close } = createCaller(proxy.port);
    let answered = 0;
    let stopped = false;
    const callers = Array.from({ length: 8 }, async () => {
      while (!stopped) {
        await call();
        answered += 1;
      }
    });
    await waitUntil(() => answered > 50);
    current = servers[1];
    const answeredBefore = answered;
    await servers[0].drain({ delayMs: 500, timeoutMs: 60_000 });
    await waitUntil(() => answered > answeredBefore + 50);
    stopped = true;
    await Promise.all(callers);
    close();
    await servers[1].drain({ delayMs: 0, timeoutMs: 60_000 });
  });

  test("notifies clients of HTTP/2 at once, and serves new ones until its delay is over", async () => {
    const stream = gatedStream();
    const server = await startSpeechServer({ handlers: stream.handlers });
    const transport = stockTransport("gRPC", server.baseUrl);
    const frames = createClient(SpeechService, transport).synthesize({})[Symbol.asyncIterator]();
    await frames.next();
    const idle = connectHttp2(server.baseUrl);
    await once(idle, "remoteSettings");
    const goaway = once(idle, "goaway");
    const drain = server.drain({ delayMs: 1500, timeoutMs: 60_000 });
    expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
    const late = createClient(SpeechService, stockTransport("gRPC", server.baseUrl));
    const lateFrames = late.synthesize({})[Symbol.asyncIterator]();
    expect((await lateFrames.next()).done).toBe(false);
    stream.open();
    for (const running of [frames, lateFrames]) while ((await running.next()).done !== true);
    await drain;
  });

  test("serves the next call on a connection whose answer had begun before, then ends it", async () => {
    const stream = gatedStream();
    const server = await startSpeechServer({ handlers: stream.handlers });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const transport = stockTransport("Connect over HTTP/1.1", server.baseUrl, { agent });
    const client = createClient(SpeechService, transport);
    const frames = client.synthesize({})[Symbol.asyncIterator]();
    await frames.next();
    const drain = server.drain({ delayMs: 1500, timeoutMs: 60_000 });
    await waitUntil(() =>
      get(`${server.baseUrl}/healthz`, new Agent()).then(
        () => false,
        () => true,
      ),
    );
    stream.open();
    while ((await frames.next()).done !== true);
    expect((await client.listSpeechModels({})).models).toHaveLength(1);
    await drain;
    expect(Object.keys(agent.freeSockets)).toEqual([]);
  });

  test("is not held up by clients that watch its health", async () => {
    const server = await startSpeechServer();
    const watching = createClient(Health, stockTransport("gRPC", server.baseUrl));
    const seen: number[] = [];
    const watch = (async () => {
      for await (const { status } of watching.watch({})) seen.push(status);
    })();
    await waitUntil(() => seen.length === 1);
    await server.drain({ delayMs: 0, timeoutMs: 60_000 });
    await watch;
    expect(seen).toEqual([1, 2]);
  });

  test("ends HTTP/1.1 connections whose last answer began before it", async () => {
    const stream = gatedStream();
    const server = await startSpeechServer({ handlers: stream.handlers });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const transport = stockTransport("Connect over HTTP/1.1", server.baseUrl, { agent });
    const frames = createClient(SpeechService, transport).synthesize({})[Symbol.asyncIterator]();
    await frames.next();
    const drain = server.drain({ delayMs: 0, timeoutMs: 60_000 });
    stream.open();
    while ((await frames.next()).done !== true);
    await drain;
    await waitUntil(() => Object.keys(agent.freeSockets).length === 0);
  });
});

async function get(url: string, agent: Agent) {
  const request = httpRequest(url, { agent }).end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return { status: response.statusCode, connection: response.headers.connection };
}

/** What calls a service over and over. */
interface Caller {
  call(): Promise<void>;
  close(): void;
}

function connectCaller(port: number): Caller {
  const transport = createRemoteTransport({ baseUrl: `http://localhost:${port}` });
  const client = createRpcClient(SpeechService, transport);
  return {
    call: async () => expect((await client.listSpeechModels({})).models).toHaveLength(1),
    close: () => undefined,
  };
}

function grpcCaller(port: number): Caller {
  const client = new GrpcClient(`localhost:${port}`, credentials.createInsecure());
  const path = `/${SpeechService.typeName}/${SpeechService.method.listSpeechModels.name}`;
  const read = (bytes: Buffer) => fromBinary(ListSpeechModelsResponseSchema, bytes);
  return {
    call: () =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          path,
          () => Buffer.alloc(0),
          read,
          {},
          (error, answer) => {
            if (answer?.models.length === 1) resolve();
            else reject(error);
          },
        );
      }),
    close: () => client.close(),
  };
}

/** A port whose new connections go where `target` says. */
async function startPortProxy(target: () => number) {
  const clients = new Set<Socket>();
  const listener = createServer((client) => {
    clients.add(client);
    const server = connect(target(), "localhost");
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on("error", () => to.destroy()).pipe(to);
    }
  }).listen(0, "localhost");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy();
      await once(listener.close(), "close");
    },
  };
}
