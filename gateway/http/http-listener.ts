/**
 * The public HTTP/1.1 port, with or without TLS.
 *
 * Owns: the listening socket and every connection on it.
 * 1. A request that is no HTTP, or whose headers come too slowly, gets a JSON answer when none has begun on its
 *    connection, and the connection is closed.
 * 2. close() goes on accepting for `delayMs`, then refuses new connections, lets running requests end, and drops what
 *    is left at `timeoutMs`. From its first moment on, answers that begin say `Connection: close`; a connection whose
 *    client got no notice is ended once it has been quiet for `delayMs` (http1-connections.ts).
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { Http1Connections } from "../../lib/rpc/port/http1-connections.ts";
import { type CloseOptions, listenBacklog } from "../../lib/rpc/port/port-listener.ts";
import type { DrainOptions } from "../../lib/rpc/server.ts";

/** Why a request could not be read. */
export type RequestFault = "malformed" | "headers_too_large" | "headers_too_slow";

/** Longest request line and headers together, bytes. */
export const maxHeaderBytes = 16_384;

const faultByCode: Readonly<Record<string, RequestFault>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "headers_too_slow",
};

/** How a port is opened and what it serves. */
export interface HttpListenerOptions {
  host: string;
  /** 0 lets the system choose. */
  port: number;
  /** Certificate and key, PEM; plain HTTP without. */
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** How long the headers of a request may take to arrive. */
  headersTimeoutMs: number;
  /** `awaitsContinue`: the client sends its body only after `100 Continue`. */
  handle(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void;
  /** Headers and body of the answer to what is no HTTP request that can be read. */
  malformed(fault: RequestFault): { headers: Readonly<Record<string, string>>; body: string };
}

/** An open port. */
export interface HttpListener {
  readonly port: number;
  readonly draining: boolean;
  /** Accepts for `delayMs` more, then lets what runs end, for at most `timeoutMs`. */
  close(drain: DrainOptions): Promise<void>;
}

/** Longer than clients and load balancers keep an idle connection, so that theirs is the end that closes first. */
const keepAliveTimeoutMs = 75_000;
const maxTimeoutCheckMs = 5000;

/** Opens the port. Rejects when it can't be bound. */
export async function listenHttp(options: HttpListenerOptions): Promise<HttpListener> {
  const { headersTimeoutMs, tls } = options;
  const serverOptions: ServerOptions = {
    noDelay: true,
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headersTimeoutMs,
    // Bodies have a time-out of their own.
    requestTimeout: 0,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(headersTimeoutMs, maxTimeoutCheckMs),
  };
  const server =
    tls === undefined
      ? createServer(serverOptions)
      : createTlsServer({ ...serverOptions, ...tls, handshakeTimeout: headersTimeoutMs });
  const connections = new Http1Connections();
  let draining = false;
  server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) =>
    connections.add(socket),
  );
  serve(server, options, connections);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    const { port, host } = options;
    server.listen({ port, host, backlog: listenBacklog }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    get draining() {
      return draining;
    },
    async close({ delayMs, timeoutMs }) {
      draining = true;
      connections.startDraining();
      if (delayMs > 0) await delay(delayMs); // 2.
      await closeServer(server, connections, { quietMs: delayMs, timeoutMs });
    },
  };
}

function serve(server: Server, options: HttpListenerOptions, connections: Http1Connections): void {
  const accept = (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) => {
    connections.begin(request, response);
    options.handle(request, response, awaitsContinue);
  };
  server.on("request", (request, response) => accept(request, response, false));
  server.on("checkContinue", (request, response) => accept(request, response, true));
  server.on("checkExpectation", (request, response) => accept(request, response, false));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const answer = options.malformed(faultByCode[error.code ?? ""] ?? "malformed");
    answerMalformed(socket, connections.newestAnswer(socket), answer); // 1.
  });
}

/** Answers through the response that waits on the connection, if one does, so that its order is kept. */
function answerMalformed(
  socket: Duplex,
  waiting: ServerResponse | undefined,
  { headers, body }: ReturnType<HttpListenerOptions["malformed"]>,
): void {
  if (!socket.writable || waiting?.headersSent) {
    socket.destroy();
    return;
  }
  const length = String(Buffer.byteLength(body));
  if (waiting !== undefined) {
    for (const [name, value] of Object.entries(headers)) {
      if (!waiting.hasHeader(name)) waiting.setHeader(name, value);
    }
    waiting.writeHead(400, { "content-length": length, connection: "close" }).end(body);
    return;
  }
  const lines = Object.entries({ ...headers, "content-length": length, connection: "close" });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.end(`HTTP/1.1 400 Bad Request\r\n${head}\r\n${body}`, () => socket.destroy());
}

async function closeServer(
  server: Server,
  connections: Http1Connections,
  { quietMs = 0, timeoutMs }: CloseOptions,
): Promise<void> {
  // Not by the close() of HTTP servers, which drops at once every connection that waits for no answer.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  const stopEnding = connections.endQuiet(quietMs);
  const limit = setTimeout(() => server.closeAllConnections(), timeoutMs);
  await closed;
  stopEnding();
  clearTimeout(limit);
  server.close();
}
