import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Agent, Pool } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { selfSignedCertificate } from "../../test/support/self-signed-certificate.ts";
import { audioFrame, audioLength, startSpeechServer } from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createRemoteTransport, createRpcClient } from "./client.ts";
import { createPatientAgent } from "./patient-agent.ts";

const unavailable = { name: "DomainError", reason: ErrorReason.SERVICE_UNAVAILABLE };

/** Both ways to call: each resolves when it has its whole answer. */
const ways = {
  unary: async (port: number, timeoutMs?: number) => {
    await clientOf(port).listSpeechModels({}, timeoutMs === undefined ? {} : { timeoutMs });
  },
  streaming: async (port: number, timeoutMs?: number) => {
    const stream = clientOf(port).synthesize({}, timeoutMs === undefined ? {} : { timeoutMs });
    const lengths: number[] = [];
    for await (const frame of stream) lengths.push(audioLength(frame));
    expect(lengths).toEqual([1, 2]);
  },
} as const;

function clientOf(port: number) {
  return createRpcClient(SpeechService, createRemoteTransport({ baseUrl: `http://127.0.0.1:${port}` }));
}

/** A port where nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await once(server.close(), "close");
  return port;
}

/** Resolves once a connection that was begun now is refused; those that were begun before are, too. */
async function refused(port: number): Promise<void> {
  const [error] = (await once(connect(port, "127.0.0.1"), "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNREFUSED");
}

/** A server that does `treat` to each connection, and how many there were. */
async function startRawServer(treat: (socket: Socket) => void) {
  const counted = { connections: 0 };
  const server: Server = createServer((socket) => {
    counted.connections += 1;
    socket.on("error", () => undefined);
    treat(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, counted };
}

describe.for(["unary", "streaming"] as const)("a call (%s)", (way) => {
  test("waits for a server that is just coming up, and is made once", async () => {
    const port = await closedPort();
    const call = ways[way](port);
    call.catch(() => undefined);
    await refused(port);
    let calls = 0;
    await using _server = await startSpeechServer({
      host: "127.0.0.1",
      port,
      handlers: {
        listSpeechModels() {
          calls += 1;
          return {};
        },
        async *synthesize() {
          calls += 1;
          yield audioFrame(1);
          yield audioFrame(2);
        },
      },
    });
    await call;
    expect(calls).toBe(1);
  });

  test("fails when nobody comes, or at its deadline if that is sooner", async () => {
    const port = await closedPort();
    await expect(ways[way](port)).rejects.toMatchObject(unavailable);
    await expect(ways[way](port, 50)).rejects.toMatchObject({ reason: ErrorReason.TIMED_OUT });
  });

  test.for([
    ["closes the connection before a byte", (socket: Socket): unknown => socket.destroy()],
    ["resets the connection before a byte", (socket: Socket): unknown => socket.resetAndDestroy()],
    ["closes it once it has read", (socket: Socket): unknown => socket.once("data", () => socket.destroy())],
    [
      "breaks off its answer",
      (socket: Socket): unknown =>
        socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")),
    ],
  ] as const)("is not made again when the server %s: it may have begun", async ([, treat]) => {
    const { port, counted } = await startRawServer(treat);
    await expect(ways[way](port)).rejects.toMatchObject({ name: "DomainError" });
    // A connection of the test's own, behind which no other can come late.
    connect(port, "127.0.0.1").on("error", () => undefined);
    await waitUntil(() => counted.connections === 2);
  });
});

/** Asks until the connection is free again. */
async function ask(agent: Agent, origin: string) {
  const { statusCode, body } = await agent.request({ origin, path: "/healthz", method: "POST" });
  await body.text();
  await waitUntil(() => connectionsOf(agent, origin).free === 1);
  return statusCode;
}

function connectionsOf(agent: Agent, origin: string) {
  // Without connections the agent knows nothing of an origin.
  return (agent.stats[origin] as Pool["stats"] | undefined) ?? { connected: 0, free: 0 };
}

test("a request on a kept connection that breaks is not made again", async () => {
  let requests = 0;
  const { port, counted } = await startRawServer((socket) => {
    socket.on("data", () => {
      requests += 1;
      if (requests > 1) socket.destroy();
      else socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
  });
  const agent = createPatientAgent();
  onTestFinished(() => agent.destroy());
  const origin = `http://127.0.0.1:${port}`;
  await ask(agent, origin);
  await expect(ask(agent, origin)).rejects.toThrow();
  expect([requests, counted.connections]).toEqual([2, 1]);
});

test("a connection that no call uses is given up long before its server does", async () => {
  await using server = await startSpeechServer({ host: "127.0.0.1" });
  const agent = createPatientAgent();
  onTestFinished(() => agent.destroy());
  const origin = `http://127.0.0.1:${server.port}`;
  await ask(agent, origin);
  await waitUntil(() => connectionsOf(agent, origin).connected === 0);
});

test("over TLS a call waits in the same way, and connections are kept", async (context) => {
  const certificate = selfSignedCertificate();
  if (certificate === undefined) return context.skip("needs the openssl command to make a certificate");
  const port = await closedPort();
  const agent = createPatientAgent({ ca: certificate.cert });
  onTestFinished(() => agent.destroy());
  const origin = `https://127.0.0.1:${port}`;
  const first = ask(agent, origin);
  first.catch(() => undefined);
  await refused(port);
  let connections = 0;
  const server = createTlsServer(certificate, (_request, response) => response.end("ok"))
    .on("secureConnection", () => {
      connections += 1;
    })
    .listen(port, "127.0.0.1");
  onTestFinished(() => void server.close());
  expect(await first).toBe(200);
  expect(await ask(agent, origin)).toBe(200);
  expect(connections).toBe(1);
});
