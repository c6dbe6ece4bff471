/**
 * One TCP port for HTTP/1.1 and HTTP/2 without TLS negotiation (h2c by prior knowledge), and for both over TLS.
 *
 * Owns: the listening socket, every connection on it, and their end.
 * 1. A connection is given to a protocol once its first bytes decide: the HTTP/2 preface or anything else.
 * 2. A peer that stays silent is dropped after `peekTimeoutMs`.
 * 3. close() refuses new connections at once, lets running requests end, and drops what is left at its deadline.
 */
import { createServer as createHttp1Server, type IncomingMessage, type ServerResponse } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";

/** A request of either protocol. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** A response of either protocol. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Options of listenOnPort. */
export interface PortListenerOptions {
  host: string;
  /** 0 lets the system choose. */
  port: number;
  handle: (request: NodeRequest, response: NodeResponse) => void;
  /** Certificate and key; plain TCP without it. */
  tls?: Pick<TlsOptions, "cert" | "key">;
  /** How long a new connection may stay silent. */
  peekTimeoutMs?: number;
  /** How long a connection may idle between requests; longer than any client of ours keeps one. */
  idleTimeoutMs?: number;
}

/** An open port. */
export interface PortListener {
  readonly port: number;
  /** Stops listening, ends idle connections, waits for busy ones up to `timeoutMs`, then drops them. */
  close(timeoutMs: number): Promise<void>;
}

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const idleSweepMs = 50;

/** Opens the port. Rejects when it can't be bound (in use, no such address, not permitted). */
export async function listenOnPort(options: PortListenerOptions): Promise<PortListener> {
  const idleTimeoutMs = options.idleTimeoutMs ?? 75_000;
  const http1 = createHttp1Server({ keepAliveTimeout: idleTimeoutMs, noDelay: true }, options.handle);
  // A server that never listens tracks no connections: its timeouts and closeIdleConnections() would do nothing.
  http1.emit("listening");
  const sessions = new Set<ServerHttp2Session>();
  const http2 = createHttp2Server({}, options.handle);
  http2.on("session", (session) => {
    sessions.add(session);
    session.setTimeout(idleTimeoutMs, () => session.close());
    session.once("close", () => sessions.delete(session));
  });

  const undecided = new Set<Socket>();
  const dispatch = (socket: Socket) => {
    undecided.add(socket);
    decideProtocol(socket, options.peekTimeoutMs ?? 10_000, (isHttp2) => {
      undecided.delete(socket);
      if (isHttp2 !== undefined) (isHttp2 ? http2 : http1).emit("connection", socket);
    });
  };
  const server =
    options.tls === undefined
      ? createTcpServer({ noDelay: true }, dispatch)
      : createTlsServer({ ...options.tls, ALPNProtocols: ["h2", "http/1.1"], noDelay: true }, dispatch);

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      resolve();
    });
  });

  return {
    port: (server.address() as AddressInfo).port,
    async close(timeoutMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of undecided) socket.destroy();
      for (const session of sessions) session.close();
      const sweep = setInterval(() => http1.closeIdleConnections(), idleSweepMs);
      http1.closeIdleConnections();
      const drop = setTimeout(() => {
        http1.closeAllConnections();
        for (const session of sessions) session.destroy();
      }, timeoutMs);
      await closed;
      clearInterval(sweep);
      clearTimeout(drop);
      http1.close();
      http2.close();
    },
  };
}

/** Reads until the first bytes tell the protocol; calls back with undefined when the peer left or stayed silent. */
function decideProtocol(
  socket: Socket,
  timeoutMs: number,
  decided: (isHttp2: boolean | undefined) => void,
): void {
  let head = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const finish = (isHttp2: boolean | undefined) => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("close", onClose).off("error", onError);
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
    socket.unshift(head);
  };
  socket.on("readable", onReadable).once("close", onClose).on("error", onError);
}
