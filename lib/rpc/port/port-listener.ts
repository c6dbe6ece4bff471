/**
 * One TCP port for HTTP/1.1 and HTTP/2 without TLS negotiation (h2c by prior knowledge), and for both over TLS.
 *
 * Owns: the listening socket, every connection on it, and their end.
 * 1. A connection is given to a protocol once its first bytes decide: the HTTP/2 preface or anything else.
 * 2. A peer that stays silent is dropped after `peekTimeoutMs`, one that has no request after `idleTimeoutMs`, however
 *    often it pings, and one whose request does not come to an end after `requestTimeoutMs`.
 * 3. From startDraining() on clients are asked to leave: HTTP/1.1 by `Connection: close`, HTTP/2 by a GOAWAY that names
 *    the last stream taken, so that its client knows which ones have not begun. (Node can't send one that refuses none.)
 *    Sessions that begin later are served until close().
 * 4. close() refuses new connections at once, lets running requests end, ends what is quiet (http1-connections.ts),
 *    and drops what is left at its deadline.
 * 5. What one connection may ask for at once is bounded: streams, pipelined requests, headers; and how often it may take
 *    back what it asked for. One that goes beyond is ended. How many connections there may be says port-connections.ts.
 */
import { once } from "node:events";
import {
  createServer as createHttp1Server,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2Server,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { Http1Connections } from "./http1-connections.ts";
import { type ConnectionLimits, PortConnections } from "./port-connections.ts";

/** A request of either protocol. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** A response of either protocol. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Where to listen, what serves a request of either protocol, and how long its peer may take. */
export interface PortListenerOptions {
  host: string;
  /** 0 lets the system choose. */
  port: number;
  handle: (request: NodeRequest, response: NodeResponse) => void;
  /** Certificate and key; plain TCP without it. */
  tls?: Pick<TlsOptions, "cert" | "key">;
  /** How long a new connection may stay silent, and how long a TLS handshake may take. */
  peekTimeoutMs?: number;
  /** How long the headers of an HTTP/1.1 request may take. */
  headersTimeoutMs?: number;
  /** How long all of a request of HTTP/1.1 may take to come. */
  requestTimeoutMs?: number;
  /** How long a connection may idle between requests; longer than any client of ours keeps one. */
  idleTimeoutMs?: number;
  connectionLimits?: Partial<ConnectionLimits>;
}

/** An open port. */
export interface PortListener {
  readonly port: number;
  /** Asks clients to leave, and goes on serving those that don't. */
  startDraining(): void;
  /** Stops listening, ends connections that are quiet, waits for others up to `timeoutMs`, then drops them. */
  close(options: CloseOptions): Promise<void>;
}

/** How a port is closed. */
export interface CloseOptions {
  /** How long a connection of HTTP/1.1 must have been without a request before it is ended; 0 unless given. */
  readonly quietMs?: number;
  readonly timeoutMs: number;
}

/**
 * Connections that may wait to be accepted, as far as the system allows (net.core.somaxconn). Beyond it Linux drops what
 * arrives, and clients dial again after a second, then two more, then four.
 */
export const listenBacklog = 4096;

/** After so many requests an HTTP/1.1 connection is ended, with the answer to the last. */
const maxRequestsPerConnection = 500;

/** Of a request, all of them together; a service token has up to 8 KiB. */
const maxHeaderBytes = 16 << 10;
/** Streams at once on one connection; clients of gRPC wait for one to end. */
const maxConcurrentStreams = 128;
/** Streams taken back: all that can be open, twice over, and then so many a second. */
const streamResetBurst = 2 * maxConcurrentStreams;
const streamResetRate = 33;
/** Requests of HTTP/1.1 that wait on one connection. Clients hardly send a second one before they have an answer. */
const maxPipelinedRequests = 16;

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** Opens the port. Rejects when it can't be bound (in use, no such address, not permitted). */
export async function listenOnPort(options: PortListenerOptions): Promise<PortListener> {
  const peekTimeoutMs = options.peekTimeoutMs ?? 10_000;
  const idleTimeoutMs = options.idleTimeoutMs ?? 75_000;
  const http1Connections = new Http1Connections();
  const http1 = startHttp1(options, idleTimeoutMs, http1Connections);
  const sessions = new Set<ServerHttp2Session>();
  const http2 = startHttp2(options, idleTimeoutMs, sessions);

  const sockets = new PortConnections(options.connectionLimits);
  const undecided = new Set<Socket>();
  const dispatch = (socket: Socket) => {
    undecided.add(socket);
    decideProtocol(socket, peekTimeoutMs, (isHttp2) => {
      undecided.delete(socket);
      if (isHttp2 === undefined) return;
      if (isHttp2 && !sockets.beginSession(socket)) return;
      if (!isHttp2) http1Connections.add(socket);
      (isHttp2 ? http2 : http1).emit("connection", socket); // 1.
    });
  };
  const server = createServer(options.tls, peekTimeoutMs, dispatch, sockets);
  await bind(server, options);

  return {
    port: (server.address() as AddressInfo).port,
    startDraining() {
      http1Connections.startDraining(); // 3.
      for (const session of sessions) session.close();
    },
    async close({ quietMs = 0, timeoutMs }) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve())); // 4.
      for (const socket of undecided) socket.destroy();
      for (const session of sessions) session.close();
      const stopEnding = http1Connections.endQuiet(quietMs);
      const drop = setTimeout(() => sockets.destroy(), timeoutMs);
      await closed;
      stopEnding();
      clearTimeout(drop);
      http1.close();
      http2.close();
    },
  };
}

function startHttp1(
  options: PortListenerOptions,
  keepAliveTimeout: number,
  connections: Http1Connections,
): HttpServer {
  const headersTimeout = options.headersTimeoutMs ?? 20_000;
  const requestTimeout = options.requestTimeoutMs ?? 60_000;
  const connectionsCheckingInterval = Math.ceil(headersTimeout / 4);
  const http1 = createHttp1Server({
    keepAliveTimeout,
    headersTimeout,
    requestTimeout, // 2.
    connectionsCheckingInterval,
    maxHeaderSize: maxHeaderBytes, // 5.
    noDelay: true,
  });
  const begin = (request: IncomingMessage, response: ServerResponse) => {
    if (connections.begin(request, response) > maxPipelinedRequests) request.socket.destroy();
    else options.handle(request, response);
  };
  // What reads the body asks for it, where its client waits for that.
  http1.on("request", begin).on("checkContinue", begin);
  // A kept connection stays with its replica: now and then its client has to choose anew.
  http1.maxRequestsPerSocket = maxRequestsPerConnection;
  // A server that never listens tracks no connections: its timeouts would do nothing.
  http1.emit("listening");
  return http1;
}

function startHttp2(
  options: PortListenerOptions,
  idleTimeoutMs: number,
  sessions: Set<ServerHttp2Session>,
): Http2Server {
  const settings = { maxConcurrentStreams, maxHeaderListSize: maxHeaderBytes };
  const http2 = createHttp2Server({ settings, streamResetBurst, streamResetRate }); // 5.
  http2.on("request", options.handle).on("checkContinue", options.handle);
  return http2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    closeWhenIdle(session, idleTimeoutMs);
  });
}

/** Without a stream for so long a session is closed; with one that brings and takes nothing no new ones are taken. */
function closeWhenIdle(session: ServerHttp2Session, idleTimeoutMs: number): void {
  session.setTimeout(idleTimeoutMs, () => session.close()); // 2.
  let streams = 0;
  let idle: NodeJS.Timeout | undefined;
  const wait = () => {
    idle = setTimeout(() => session.close(), idleTimeoutMs);
  };
  wait();
  session.on("stream", (stream) => {
    clearTimeout(idle);
    streams += 1;
    stream.once("close", () => {
      streams -= 1;
      if (streams === 0 && !session.closed) wait();
    });
  });
  session.once("close", () => clearTimeout(idle));
}

function createServer(
  tls: PortListenerOptions["tls"],
  handshakeTimeout: number,
  dispatch: (socket: Socket) => void,
  sockets: PortConnections,
): TcpServer {
  if (tls === undefined) {
    return createTcpServer({ noDelay: true }, (socket) => {
      if (sockets.add(socket)) dispatch(socket);
    });
  }
  const options = { ...tls, ALPNProtocols: ["h2", "http/1.1"], noDelay: true, handshakeTimeout };
  // Node leaves a connection open whose handshake failed or took too long.
  return createTlsServer(options, dispatch)
    .on("connection", (socket: Socket) => sockets.add(socket))
    .on("tlsClientError", (_error, socket) => socket.destroy());
}

async function bind(server: TcpServer, { host, port }: PortListenerOptions): Promise<void> {
  server.listen({ port, host, backlog: listenBacklog });
  await once(server, "listening");
  // A connection that can't be accepted (no file descriptor left) is lost; the others go on.
  server.on("error", () => undefined);
}

/** Reads until the first bytes show the protocol; calls back with undefined when the peer left or stayed silent. */
function decideProtocol(
  socket: Socket,
  timeoutMs: number,
  decided: (isHttp2: boolean | undefined) => void,
): void {
  let head = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs); // 2.
  const finish = (isHttp2: boolean | undefined) => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("close", onClose).off("error", onError);
    if (isHttp2 !== undefined) socket.unshift(head);
    decided(isHttp2);
  };
  const onClose = () => finish(undefined);
  const onError = () => {
    socket.destroy();
  };
  const onReadable = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    head = Buffer.concat([head, chunk]);
    const length = Math.min(head.length, preface.length);
    const isPreface = head.compare(preface, 0, length, 0, length) === 0;
    if (isPreface && length < preface.length) return;
    finish(isPreface);
  };
  socket.on("readable", onReadable).once("close", onClose).on("error", onError);
}
