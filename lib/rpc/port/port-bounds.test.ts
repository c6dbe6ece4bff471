import { once } from "node:events";
import { Agent, get } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { listenOnPort, type NodeResponse, type PortListenerOptions } from "./port-listener.ts";

const host = "127.0.0.1";

/** A port whose answers wait until a test ends them. */
async function listen(options: Partial<PortListenerOptions> = {}) {
  const waiting: NodeResponse[] = [];
  const listener = await listenOnPort({
    host,
    port: 0,
    handle: (_request, response) => void waiting.push(response),
    ...options,
  });
  onTestFinished(() => listener.close({ timeoutMs: 0 }));
  return { port: listener.port, waiting };
}

function openSession(port: number): ClientHttp2Session {
  const session = connectHttp2(`http://${host}:${port}`).setMaxListeners(0);
  session.on("error", () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

function openSocket(port: number): { socket: Socket; isClosed: () => boolean } {
  let closed = false;
  const socket = connect(port, host)
    .on("error", () => undefined)
    .on("close", () => {
      closed = true;
    });
  socket.resume();
  onTestFinished(() => void socket.destroy());
  return { socket, isClosed: () => closed };
}

test("a connection has so many streams at once; the next waits for one to end", async () => {
  const { port, waiting } = await listen();
  const session = openSession(port);
  await once(session, "remoteSettings");
  expect(session.remoteSettings).toMatchObject({ maxConcurrentStreams: 128, maxHeaderListSize: 16 << 10 });
  const answers = Array.from({ length: 130 }, () => {
    const stream = session.request({});
    stream.on("error", () => undefined);
    return once(stream, "response");
  });
  await waitUntil(() => waiting.length === 128);
  for (const response of waiting) response.end();
  await waitUntil(() => waiting.length === 130);
  for (const response of waiting.slice(128)) response.end();
  await Promise.all(answers);
});

test("a client that takes streams back as fast as it opens them is ended; one that cancels what it has is not", async () => {
  const { port, waiting } = await listen();
  const patient = openSession(port);
  await once(patient, "remoteSettings");
  for (let stream = 0; stream < 120; stream += 1) {
    const opened = patient.request({}).on("error", () => undefined);
    opened.once("ready", () => opened.close(constants.NGHTTP2_CANCEL));
  }
  await waitUntil(() => waiting.length === 120);
  const answered = once(patient.request({}), "response");
  await waitUntil(() => waiting.length === 121);
  waiting.at(-1)?.end();
  await answered;

  const rapid = openSession(port);
  const ended = new Promise<void>((resolve) => rapid.once("close", () => resolve()));
  for (let stream = 0; !rapid.destroyed && stream < 10_000; stream += 1) {
    const opened = rapid.request({}).on("error", () => undefined);
    opened.close(constants.NGHTTP2_CANCEL);
    if (stream % 100 === 0) await new Promise(setImmediate);
  }
  await ended;
  expect(waiting.length).toBeLessThan(2000);
});

test("a client without a request is ended, however often it pings", async () => {
  const { port } = await listen({ idleTimeoutMs: 200 });
  const session = openSession(port);
  let pings = 0;
  const ping = () => {
    if (session.destroyed || session.closed) return;
    session.ping(() => {
      pings += 1;
      ping();
    });
  };
  session.once("connect", ping);
  await once(session, "close");
  expect(pings).toBeGreaterThan(1);
});

test("a client that pipelines more than anybody needs is ended", async () => {
  const { port, waiting } = await listen();
  const { socket, isClosed } = openSocket(port);
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(16));
  await waitUntil(() => waiting.length === 16);
  expect(isClosed()).toBe(false);
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await waitUntil(isClosed);
  expect(waiting).toHaveLength(16);
});

test("a request that does not come to its end is ended", async () => {
  const { port } = await listen({ headersTimeoutMs: 200, requestTimeoutMs: 400 });
  const { socket, isClosed } = openSocket(port);
  socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n");
  await waitUntil(() => isClosed() || void socket.write("x"), { intervalMs: 50 });
});

test("a header larger than any that a client of ours sends is refused", async () => {
  const { port, waiting } = await listen();
  const { socket, isClosed } = openSocket(port);
  socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx-large: ${"x".repeat(17 << 10)}\r\n\r\n`);
  await waitUntil(isClosed);
  const session = openSession(port);
  await once(session, "remoteSettings");
  const stream = session.request({ "x-large": "x".repeat(17 << 10) });
  await once(stream, "error");
  expect(waiting).toEqual([]);
});

test("a port takes so many connections, of one address half of them, of HTTP/2 fewer", async () => {
  const limits = { maxConnections: 8, maxConnectionsPerAddress: 4, maxSessionsPerAddress: 2 };
  const { port, waiting } = await listen({ host: "0.0.0.0", connectionLimits: limits });
  const request = (localAddress: string) => {
    const sent = get({ port, host, localAddress, agent: new Agent() });
    return once(sent, "response").then(
      () => "answered",
      () => "ended",
    );
  };
  const first = Array.from({ length: 6 }, () => request("127.0.0.1"));
  await waitUntil(() => waiting.length === 4);
  expect(await Promise.race(first)).toBe("ended");
  const second = Array.from({ length: 4 }, () => request("127.0.0.2"));
  await waitUntil(() => waiting.length === 8);
  expect(await request("127.0.0.3")).toBe("ended");
  for (const response of waiting.splice(0)) {
    response.setHeader("connection", "close");
    response.end();
  }
  const outcomes = await Promise.all([...first, ...second]);
  expect(outcomes.filter((outcome) => outcome === "answered")).toHaveLength(8);

  const sessions = Array.from({ length: 3 }, () => openSession(port));
  await waitUntil(() => sessions.filter(({ destroyed }) => destroyed).length === 1);
  const left = sessions.filter(({ destroyed }) => !destroyed);
  const answers = left.map((session) => once(session.request({}), "response"));
  await waitUntil(() => waiting.length === 2);
  for (const response of waiting) response.end();
  await Promise.all(answers);
});

test("two thousand streams of one gateway, a connection each, are carried", async () => {
  const { port, waiting } = await listen();
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const answers = Array.from({ length: 2000 }, () => once(get({ port, host, agent }), "response"));
  await waitUntil(() => waiting.length === 2000, { timeoutMs: 30_000 });
  for (const response of waiting) response.end("x");
  const statuses = (await Promise.all(answers)).map(([response]) => response.resume().statusCode);
  expect(new Set(statuses)).toEqual(new Set([200]));
});
