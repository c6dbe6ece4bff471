/**
 * The public HTTP/1.1 port, with or without TLS.
 *
 * Owns: the listening socket and every connection on it.
 * 1. A request that is no HTTP, or whose headers come too slowly, gets a JSON answer when none has begun on its
 *    connection, and the connection is closed.
 * 2. close() goes on accepting for `delayMs`, then refuses new connections, lets running requests end, and drops what
 *    is left at `timeoutMs`. From its first moment on, answers that begin say `Connection: close`.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { DrainOptions } from "../lib/runtime/server.ts";

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
  /** Headers and body of the answer to what is no HTTP request. */
  malformed(): { headers: Readonly<Record<string, string>>; body: string };
}

/** An open port. */
export interface HttpListener {
  readonly port: number;
  readonly draining: boolean;
  close(drain: DrainOptions): Promise<void>;
}

/** Longer than clients and load balancers keep an idle connection, so that theirs is the end that closes first. */
const keepAliveTimeoutMs = 75_000;
const maxTimeoutCheckMs = 5000;
const idleSweepMs = 50;

/** Every open connection with the answers that it waits for, oldest first; several when requests are pipelined. */
type Connections = Map<Duplex, Set<ServerResponse>>;

/** Opens the port. Rejects when it can't be bound. */
export async function listenHttp(options: HttpListenerOptions): Promise<HttpListener> {
  const { headersTimeoutMs, tls } = options;
  const serverOptions: ServerOptions = {
    noDelay: true,
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
  const connections: Connections = new Map();
  const state = { draining: false };
  server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    connections.set(socket, new Set());
    socket.once("close", () => connections.delete(socket));
  });
  serve(server, options, connections, state);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    get draining() {
      return state.draining;
    },
    async close({ delayMs, timeoutMs }) {
      state.draining = true;
      announceClose(connections);
      if (delayMs > 0) await delay(delayMs);
      await closeServer(server, connections, timeoutMs);
    },
  };
}

function serve(
  server: Server,
  options: HttpListenerOptions,
  connections: Connections,
  state: { readonly draining: boolean },
): void {
  const accept = (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) => {
    const waiting = connections.get(request.socket);
    waiting?.add(response);
    response.once("close", () => waiting?.delete(response));
    if (state.draining) response.setHeader("connection", "close");
    options.handle(request, response, awaitsContinue);
  };
  server.on("request", (request, response) => accept(request, response, false));
  server.on("checkContinue", (request, response) => accept(request, response, true));
  server.on("checkExpectation", (request, response) => accept(request, response, false));
  server.on("clientError", (_error, socket) => {
    answerMalformed(socket, [...(connections.get(socket) ?? [])].at(-1), options);
  });
}

/** Answers through the response that waits on the connection, if one does, so that its order is kept. */
function answerMalformed(
  socket: Duplex,
  waiting: ServerResponse | undefined,
  options: HttpListenerOptions,
): void {
  if (!socket.writable || waiting?.headersSent) {
    socket.destroy();
    return;
  }
  const { headers, body } = options.malformed();
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

/** Says `Connection: close` in the last answer of each connection that is still to begin. */
function announceClose(connections: Connections): void {
  for (const waiting of connections.values()) {
    const last = [...waiting].at(-1);
    if (last !== undefined && !last.headersSent) last.setHeader("connection", "close");
  }
}

async function closeServer(server: Server, connections: Connections, timeoutMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Node itself drops connections that were kept, but not those that never sent a whole request.
  const sweep = setInterval(() => {
    for (const [socket, waiting] of connections) if (waiting.size === 0) socket.destroy();
  }, idleSweepMs);
  const limit = setTimeout(() => server.closeAllConnections(), timeoutMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(limit);
}
