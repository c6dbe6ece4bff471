/** What a port bears from clients that mean it no good. */
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { Code, type Interceptor } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { bodyOf, openCall, type RpcWire } from "../../../test/support/rpc-wire.ts";
import {
  audioFrame,
  type SpeechServer,
  startSpeechServer,
} from "../../../test/support/services/speech-server.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { DomainError } from "../../runtime/domain-error.ts";
import { createLog, silentLog } from "../../runtime/log.ts";
import { serverInterceptor } from "../interceptors.ts";
import { byteHolderKey } from "../request-context.ts";
import type { RpcServerOptions } from "../server.ts";

const { listSpeechModels, synthesize } = SpeechService.method;
const listPath = `/${SpeechService.typeName}/${listSpeechModels.name}`;
const http1: RpcWire = { protocol: "connect", codec: "proto", httpVersion: 1 };
const http2: RpcWire = { protocol: "connect", codec: "proto", httpVersion: 2 };
const grpc: RpcWire = { protocol: "grpc", codec: "proto", httpVersion: 2 };

/** Refuses whom the header `x-holder` does not name; the bytes of a request count for who it names. */
const named: Interceptor = (next) => (request) => {
  const holder = request.header.get("x-holder");
  if (holder === null) throw new DomainError(ErrorReason.KEY_MISSING, "no holder");
  request.contextValues.set(byteHolderKey, holder);
  return next(request);
};

async function start(options: Partial<RpcServerOptions> = {}): Promise<SpeechServer> {
  const server = await startSpeechServer({
    routes: (router) =>
      router.service(
        SpeechService,
        { listSpeechModels: () => ({ models: [{ id: "acme/one" }] }) },
        { interceptors: [serverInterceptor(silentLog), named] },
      ),
    ...options,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

function openSession({ baseUrl }: SpeechServer): ClientHttp2Session {
  const session = connectHttp2(baseUrl).setMaxListeners(0);
  session.on("error", () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

class Peer {
  readonly socket: Socket;
  text = "";
  closed = false;

  constructor(port: number) {
    this.socket = connect(port, "localhost");
    this.socket.on("data", (chunk) => {
      this.text += chunk.toString("latin1");
    });
    this.socket
      .on("error", () => undefined)
      .on("close", () => {
        this.closed = true;
      });
    onTestFinished(() => void this.socket.destroy());
  }
}

const post = (...headers: string[]) =>
  [`POST ${listPath} HTTP/1.1`, "content-type: application/json", ...headers, "", ""].join("\r\n");

test.for(["[", "a b", "", "%", ":::"])(
  "a host that is none (%j) is answered, and nobody else notices",
  async (host) => {
    const server = await start();
    const peer = new Peer(server.port);
    peer.socket.write(`${post(`host: ${host}`, "x-holder: a", "content-length: 2", "connection: close")}{}`);
    await waitUntil(() => peer.closed);
    expect(peer.text).toMatch(/^HTTP\/1\.1 [24]00 /);
    expect((await fetch(`${server.baseUrl}/healthz`)).status).toBe(200);
  },
);

test("a request in a URL is bounded and decoded as a body is", async () => {
  const server = await start();
  const get = async (query: string, headers: Record<string, string> = { "x-holder": "a" }) => {
    const response = await fetch(`${server.baseUrl}${listPath}?connect=v1&${query}`, { headers });
    const body = response.headers.get("content-type") === "application/json" ? await response.json() : {};
    return [response.status, (body as { code?: string }).code];
  };
  const packed = (json: string) =>
    `encoding=json&base64=1&compression=gzip&message=${gzipSync(json).toString("base64url")}`;
  expect(await get("encoding=json&message=%7B%7D")).toEqual([200, undefined]);
  expect(await get("encoding=proto&base64=1&message=")).toEqual([200, undefined]);
  expect(await get(packed("{}"))).toEqual([200, undefined]);
  expect(await get("encoding=json&message=%7B")).toEqual([400, "invalid_argument"]);
  expect(await get("encoding=proto&base64=1&message=CgU")).toEqual([400, "invalid_argument"]);
  expect(await get(packed(`{"zz":[${"[],".repeat(15_000)}[]]}`))).toEqual([400, "invalid_argument"]);
  expect(await get(packed(`{"zz":"${"x".repeat(1 << 20)}"}`))).toEqual([429, "resource_exhausted"]);
  expect(await get(packed(`{"zz":"${"x".repeat(1 << 20)}"}`), {})).toEqual([401, "unauthenticated"]);
});

test("a client that waits to be asked for its body is asked only once it may call", async () => {
  const server = await start();
  const expecting = ["host: localhost", "content-length: 2", "expect: 100-continue", "connection: close"];
  const refused = new Peer(server.port);
  refused.socket.write(post(...expecting));
  await waitUntil(() => refused.text.includes("\r\n\r\n"));
  expect(refused.text).toMatch(/^HTTP\/1\.1 401 /);
  const allowed = new Peer(server.port);
  allowed.socket.write(post(...expecting, "x-holder: a"));
  await waitUntil(() => allowed.text.includes("\r\n\r\n"));
  expect(allowed.text).toMatch(/^HTTP\/1\.1 100 /);
  allowed.socket.write("{}");
  await waitUntil(() => allowed.text.includes("HTTP/1.1 200 "));
});

test("who goes on sending what is refused is let go, over either protocol", async () => {
  const server = await start();
  const peer = new Peer(server.port);
  peer.socket.write(post("host: localhost", "content-length: 1000000"));
  await waitUntil(() => peer.text.includes("HTTP/1.1 401 "));
  const session = openSession(server);
  const calls = [http2, grpc].map((wire) => openCall(server.baseUrl, wire, listSpeechModels, {}, session));
  for (const call of calls) expect((await call.answer).code).toBe(Code.Unauthenticated);
  await waitUntil(() => peer.closed);
  // Nothing is open any more: else the port would have to wait.
  session.close();
  await once(session, "close");
});

test("a thousand requests that never end hold what has come of them and little more, and nobody else is kept out", async () => {
  const server = await start();
  const bytesEach = 16 << 10;
  const collect = await garbageCollector();
  const sessions = Array.from({ length: 10 }, () => openSession(server));
  const drip = (session: ClientHttp2Session) => {
    const call = openCall(server.baseUrl, http2, synthesize, { "x-holder": "greedy" }, session);
    call.answer.catch(() => undefined);
    call.write(Buffer.from([0, 0, 1, 0, 0]));
    return call;
  };
  const calls = sessions.flatMap((session) => Array.from({ length: 100 }, () => drip(session)));
  const heldNow = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = heldNow();
  for (let sent = 0; sent < bytesEach; sent += 1024) {
    for (const call of calls) call.write(Buffer.alloc(1024));
    await waitUntil(() => sessions.every(({ state }) => (state.outboundQueueSize ?? 0) === 0));
  }
  const other = openCall(server.baseUrl, http1, listSpeechModels, { "x-holder": "modest" });
  other.end();
  expect((await other.answer).code).toBeUndefined();
  // Their clients are in this process, too.
  expect(heldNow() - before).toBeLessThan(4 * calls.length * bytesEach);
  for (const session of sessions) session.destroy();
});

async function garbageCollector(): Promise<() => void> {
  const { setFlagsFromString } = await import("node:v8");
  const { runInNewContext } = await import("node:vm");
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

test("one holder's calls get half of the budget for as long as they run; another's are let in meanwhile", async () => {
  const running = Promise.withResolvers<void>();
  let begun = 0;
  const server = await start({
    bodyTimeoutMs: 3000,
    routes: (router) =>
      router.service(
        SpeechService,
        {
          async listSpeechModels() {
            begun += 1;
            await running.promise;
            return {};
          },
          async *synthesize() {
            begun += 1;
            await running.promise;
            yield* [];
          },
        },
        { interceptors: [serverInterceptor(silentLog), named] },
      ),
  });
  const fill = async (holder: string) => {
    const call = openCall(server.baseUrl, http1, synthesize, { "x-holder": holder });
    // A field that nobody knows, of a mebibyte less its head.
    const message = Buffer.concat([Buffer.from("fa3ef8ff3f", "hex"), Buffer.alloc((1 << 20) - 8)]);
    call.write(bodyOf(http1, synthesize, message));
    call.end();
    return (await call.answer).code;
  };
  const calls = Array.from({ length: 40 }, () => fill("greedy"));
  const refused: unknown[] = [];
  for (const call of calls) void call.then((code) => refused.push(code));
  // What waited has been refused by now; nothing that runs has ended.
  await waitUntil(() => begun + refused.length === calls.length, { timeoutMs: 20_000 });
  expect(new Set(refused)).toEqual(new Set([Code.Unavailable]));
  // Half of 64 MiB, give or take what those who waited had already brought.
  expect([31, 32]).toContain(begun);
  const before = begun;
  const modest = fill("modest");
  await waitUntil(() => begun > before);
  running.resolve();
  expect(await modest).toBeUndefined();
  const carried = (await Promise.all(calls)).filter((code) => code === undefined);
  expect(carried).toHaveLength(before);
  expect(await fill("greedy")).toBeUndefined();
});

test("a gRPC client that resets amid the answer is no bug of ours", async () => {
  const logLines: string[] = [];
  const log = createLog({
    name: "test",
    level: "warn",
    destination: { write: (line) => logLines.push(line) },
  });
  let begun = 0;
  let ended = 0;
  const server = await start({
    log,
    routes: (router) =>
      router.service(
        SpeechService,
        {
          async *synthesize(_request, { signal }) {
            begun += 1;
            signal.addEventListener("abort", () => ended++, { once: true });
            for (;;) {
              yield audioFrame(64 << 10);
              // As Node says of a stream that is gone when it is written to.
              if (signal.aborted)
                throw Object.assign(new Error("gone"), { code: "ERR_HTTP2_INVALID_STREAM" });
            }
          },
        },
        { interceptors: [serverInterceptor(log)] },
      ),
  });
  const session = openSession(server);
  for (let call = 0; call < 20; call += 1) {
    const { write, end, cut, answer } = openCall(server.baseUrl, grpc, synthesize, {}, session);
    answer.catch(() => undefined);
    write(bodyOf(grpc, synthesize, Buffer.alloc(0)));
    end();
    await waitUntil(() => begun === call + 1);
    cut();
  }
  await waitUntil(() => ended === 20);
  const other = openCall(server.baseUrl, grpc, listSpeechModels, {}, session);
  other.write(bodyOf(grpc, listSpeechModels, Buffer.alloc(0)));
  other.end();
  expect((await other.answer).code).toBe(Code.Unimplemented);
  expect(logLines).toEqual([]);
});
