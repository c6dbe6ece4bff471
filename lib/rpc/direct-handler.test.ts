/** What becomes of a call that is served directly when its caller is slow or leaves, and what it is given. */
import { once } from "node:events";
import { Agent, request as requestHttp1 } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { bodyOf, nameOfWire, openCall, rpcWires } from "../../test/support/rpc-wire.ts";
import {
  audioFrame,
  audioLength,
  type SpeechServerOptions,
  startSpeechServer,
  stockTransport,
} from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLog } from "../runtime/log.ts";
import { callLifeOf } from "./call-life.ts";
import { createRpcClient } from "./client.ts";
import { registeredMethods } from "./registered-method.ts";

const { listSpeechModels, synthesize } = SpeechService.method;
const wires = rpcWires.filter(({ protocol, codec }) => protocol === "connect" && codec === "proto");
const frameBytes = 8 << 10;

async function start(options: SpeechServerOptions) {
  const logLines: string[] = [];
  const destination = { write: (line: string) => void logLines.push(line) };
  const log = createLog({ name: "test", level: "warn", destination });
  const server = await startSpeechServer({ log, ...options });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return { ...server, logLines };
}

/** Frames without end, how many were asked for, and how it ended. */
class Endless {
  asked = 0;
  readonly ends: unknown[] = [];
  lifeOver = false;

  readonly synthesize = async function* (this: Endless, context: HandlerContext) {
    callLifeOf(context.values).whenOver(() => {
      this.lifeOver = true;
    });
    try {
      for (;;) {
        this.asked += 1;
        yield audioFrame(frameBytes);
      }
    } finally {
      this.ends.push(context.signal.aborted);
    }
  };
}

describe.for(wires.map((wire) => [nameOfWire(wire), wire] as const))("%s", ([, wire]) => {
  test("a caller who takes nothing is given no more than fits on the way, and its leaving ends the call", async () => {
    const endless = new Endless();
    const server = await start({
      handlers: { synthesize: (_request, context) => endless.synthesize(context) },
    });
    const path = `/${SpeechService.typeName}/${synthesize.name}`;
    const headers = { "content-type": "application/connect+proto" };
    const body = bodyOf(wire, synthesize, Buffer.alloc(0));
    let leave: () => void;
    if (wire.httpVersion === 1) {
      const request = requestHttp1(`${server.baseUrl}${path}`, {
        method: "POST",
        headers,
        agent: new Agent(),
      });
      request.on("error", () => undefined).end(body);
      const [response] = await once(request, "response");
      response.pause();
      leave = () => void request.destroy();
    } else {
      const session = connectHttp2(server.baseUrl).on("error", () => undefined);
      const stream = session.request({ ":method": "POST", ":path": path, ...headers });
      stream.on("error", () => undefined).end(body);
      await once(stream, "response");
      leave = () => session.destroy();
    }
    // What its sockets hold; after that nothing is asked for.
    let before = -1;
    await waitUntil(() => {
      const isStill = before === endless.asked;
      before = endless.asked;
      return isStill;
    });
    expect(endless.asked).toBeGreaterThan(1);
    expect(endless.asked * frameBytes).toBeLessThan(64 << 20);
    expect(endless.ends).toEqual([]);
    leave();
    await waitUntil(() => endless.ends.length === 1 && endless.lifeOver);
    expect(endless.ends).toEqual([true]);
    expect(server.logLines).toEqual([]);
  });

  test("a handler that waits learns at once that its caller has left", async () => {
    const waiting: string[] = [];
    const wait = async ({ signal, method }: HandlerContext) => {
      waiting.push(method.name);
      await once(signal, "abort");
      waiting.push(`${method.name} ${ConnectError.from(signal.reason).code}`);
      throw signal.reason;
    };
    const server = await start({
      handlers: {
        listSpeechModels: async (_request, context) => {
          await wait(context);
          return {};
        },
        async *synthesize(_request, context) {
          await wait(context);
          yield* [];
        },
      },
    });
    for (const method of [listSpeechModels, synthesize]) {
      waiting.length = 0;
      const call = openCall(server.baseUrl, wire, method);
      call.write(bodyOf(wire, method, Buffer.alloc(0)));
      call.end();
      await waitUntil(() => waiting.length === 1);
      call.cut();
      await waitUntil(() => waiting.length === 2);
      expect(waiting).toEqual([method.name, `${method.name} ${Code.Canceled}`]);
    }
    expect(server.logLines).toEqual([]);
  });

  test("what an interceptor puts in the place of signal, values and answer is what counts", async () => {
    const other = new AbortController();
    const seen: unknown[] = [];
    const replace: Interceptor = (next) => async (request) => {
      const header = new Headers(request.header);
      header.set("x-added", "yes");
      const answer = await next({ ...request, header, signal: other.signal });
      const answered = new Headers(answer.header);
      answered.set("x-answer", "mine");
      return { ...answer, header: answered, trailer: new Headers({ "x-end": "mine" }) };
    };
    const look = ({ signal, requestHeader, responseHeader, responseTrailer }: HandlerContext) => {
      seen.push(signal === other.signal, requestHeader.get("x-added"));
      responseHeader.set("x-answer", "the handler's");
      responseTrailer.set("x-end", "the handler's");
    };
    const server = await start({
      routes: (router) =>
        router.service(
          SpeechService,
          {
            listSpeechModels(_request, context) {
              look(context);
              return {};
            },
            async *synthesize(_request, context) {
              look(context);
              yield audioFrame(1);
            },
          },
          { interceptors: [replace] },
        ),
    });
    const name = wire.httpVersion === 1 ? "Connect over HTTP/1.1" : "Connect over HTTP/2";
    const client = createRpcClient(SpeechService, stockTransport(name, server.baseUrl));
    const metadata: (string | null)[] = [];
    const options = {
      onHeader: (header: Headers) => void metadata.push(header.get("x-answer")),
      onTrailer: (trailer: Headers) => void metadata.push(trailer.get("x-end")),
    };
    await client.listSpeechModels({}, options);
    const frames = await Array.fromAsync(client.synthesize({}, options));
    expect(frames.map(audioLength)).toEqual([1]);
    // A stream's handler runs when its answer has passed the interceptors.
    expect(metadata).toEqual(["mine", "mine", "the handler's", "mine"]);
    expect(seen).toEqual([true, "yes", true, "yes"]);
  });
});

test("many calls share one connection, one after the other, whatever comes of them", async () => {
  const server = await start({
    handlers: {
      listSpeechModels: () => Promise.reject(new ConnectError("no", Code.NotFound)),
      async *synthesize({ input }) {
        for (let length = 1; length <= 3; length += 1) yield audioFrame(length);
        if (input === "fail") throw new ConnectError("no", Code.NotFound);
      },
    },
  });
  let opened = 0;
  class CountingAgent extends Agent {
    override createConnection(...options: Parameters<Agent["createConnection"]>) {
      opened += 1;
      return super.createConnection(...options);
    }
  }
  const agent = new CountingAgent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const post = async (method: DescMethod, contentType: string, body: string) => {
    const path = `/${SpeechService.typeName}/${method.name}`;
    const headers = { "content-type": contentType };
    const request = requestHttp1(`${server.baseUrl}${path}`, { method: "POST", agent, headers });
    request.end(Buffer.from(body, "hex"));
    const [response] = await once(request, "response");
    return Buffer.concat(await Array.fromAsync<Buffer>(response)).toString("latin1");
  };
  for (let round = 0; round < 20; round += 1) {
    expect(await post(listSpeechModels, "application/proto", "")).toContain('"not_found"');
    const stream = await post(synthesize, "application/connect+proto", "0000000000");
    expect(stream).toMatch(/\{\}$/);
    const failed = await post(synthesize, "application/connect+proto", "00000000060a046661696c");
    expect(failed).toBe(
      stream.replace(/.....\{\}$/s, '\u0002\u0000\u0000\u0000-{"error":{"code":"not_found","message":"no"}}'),
    );
  }
  expect(opened).toBe(1);
});

test("a service that asks for what is not served on every path is refused when it is registered", () => {
  const limits = { readMaxBytes: 1, writeMaxBytes: 1 };
  const options = { requireConnectProtocolHeader: true };
  expect(() => registeredMethods((router) => router.service(SpeechService, {}, options), limits)).toThrow(
    "requireConnectProtocolHeader",
  );
});
