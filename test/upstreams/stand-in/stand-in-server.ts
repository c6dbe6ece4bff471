/**
 * What all stand-in upstreams share: a real HTTP/1.1 server on the loopback that keeps a log of what it received and of
 * how each request ended.
 */
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";

/** How a request ended: answered to its last byte, left by the client before that, or broken off by the stand-in. */
export type Fate = "open" | "finished" | "closed_by_client" | "cut";

/** One request as it was received. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as it came; as text, unless it is a form with files; and parsed where it is JSON. */
  readonly bytes: Buffer;
  readonly text: string;
  readonly json: unknown;
  /** Counts connections from 1: equal numbers are one connection. */
  readonly connection: number;
  fate: Fate;
  /** Body bytes that the connection has taken so far, framing not counted. */
  sentBytes: number;
  /** Resolves when `fate` is final. */
  readonly ended: Promise<Fate>;
}

/** Answers one request. */
export type StandInHandler = (request: ReceivedRequest, answer: StandInAnswer) => Promise<void> | void;

/** Options of startStandIn. */
export interface StandInOptions {
  /** 0, the default, lets the system choose. */
  port?: number;
  /** Whether requests are kept; off for load. */
  log?: boolean;
  /** Before a request's body is read, by its headers; nothing of it is read before it resolves. */
  beforeBody?: ((headers: IncomingHttpHeaders) => Promise<void> | undefined) | undefined;
  /** Takes connections that ask to be another protocol; refused by closing without it. */
  onUpgrade?: (message: IncomingMessage, socket: Duplex) => void;
}

/** A running stand-in. */
export interface StandIn {
  /** http://127.0.0.1:PORT */
  readonly baseUrl: string;
  readonly port: number;
  /** Everything received so far, oldest first. */
  readonly requests: ReceivedRequest[];
  /** Waits until `count` requests have been received and gives the last of them. */
  received(count: number): Promise<ReceivedRequest>;
  /** Drops all connections and stops. */
  close(): Promise<void>;
}

/** Starts a stand-in. */
export async function startStandIn(handler: StandInHandler, options: StandInOptions = {}): Promise<StandIn> {
  const requests: ReceivedRequest[] = [];
  const arrivals = new Set<() => void>();
  const connections = new WeakMap<Socket, number>();
  let connectionCount = 0;
  const server = createServer({ keepAliveTimeout: 30_000, noDelay: true }, async (message, response) => {
    await options.beforeBody?.(message.on("error", () => undefined).headers);
    const pieces: Buffer[] = [];
    message.on("data", (piece: Buffer) => pieces.push(piece));
    message.on("end", () => {
      const request = recordOf(message, pieces, response, connections.get(message.socket) ?? 0);
      if (options.log !== false) requests.push(request);
      for (const arrived of arrivals) arrived();
      const answer = new StandInAnswer(request, response);
      Promise.try(handler, request, answer).catch(() => response.destroy());
    });
  });
  server.on("connection", (socket) => {
    connectionCount += 1;
    connections.set(socket, connectionCount);
  });
  const upgraded = takeUpgrades(server, options.onUpgrade);
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    requests,
    received: (count) =>
      new Promise((resolve) => {
        const check = () => {
          const request = requests[count - 1];
          if (request === undefined) return;
          arrivals.delete(check);
          resolve(request);
        };
        arrivals.add(check);
        check();
      }),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await closed;
    },
  };
}

/** Connections that have become another protocol: the server no longer counts them as its own. */
function takeUpgrades(server: Server, onUpgrade: StandInOptions["onUpgrade"]): ReadonlySet<Duplex> {
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (message, socket) => {
    upgraded.add(socket.on("error", () => socket.destroy()).on("close", () => upgraded.delete(socket)));
    if (onUpgrade === undefined) socket.destroy();
    else onUpgrade(message, socket);
  });
  return upgraded;
}

function recordOf(
  message: IncomingMessage,
  body: Buffer[],
  response: ServerResponse,
  connection: number,
): ReceivedRequest {
  const { promise: ended, resolve } = Promise.withResolvers<Fate>();
  const request: ReceivedRequest = {
    method: message.method ?? "",
    path: message.url ?? "",
    headers: message.headers,
    ...parseBody(message.headers, body),
    connection,
    fate: "open",
    sentBytes: 0,
    ended,
  };
  response.once("close", () => {
    if (request.fate === "open") request.fate = response.writableFinished ? "finished" : "closed_by_client";
    resolve(request.fate);
  });
  return request;
}

function parseBody(
  headers: IncomingHttpHeaders,
  pieces: Buffer[],
): Pick<ReceivedRequest, "bytes" | "text" | "json"> {
  const bytes = Buffer.concat(pieces);
  if (headers["content-type"]?.startsWith("multipart/")) return { bytes, text: "", json: undefined };
  const text = bytes.toString("utf8");
  try {
    return { bytes, text, json: JSON.parse(text) };
  } catch {
    return { bytes, text, json: undefined };
  }
}

/** The way back to the client: writes with back-pressure and keeps the request's record. */
export class StandInAnswer {
  readonly #request: ReceivedRequest;
  readonly #response: ServerResponse;

  /** Resolves when the answer is out or its connection has ended. */
  readonly closed: Promise<unknown>;
  #wake: (() => void) | undefined;

  constructor(request: ReceivedRequest, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    this.closed = once(response, "close");
    const wake = () => this.#wake?.();
    response.on("drain", wake).on("close", wake);
  }

  /** Whether `closed` has resolved. */
  get isClosed(): boolean {
    return this.#response.closed;
  }

  /** Sends the status line and headers at once. */
  start(status: number, headers: Record<string, string>): void {
    this.#response.writeHead(status, headers);
    this.#response.flushHeaders();
  }

  /** Writes; where the connection is full, the promise waits until it has room or is gone. */
  write(bytes: Uint8Array | string): Promise<void> | undefined {
    if (this.isClosed) return undefined;
    if (this.#response.write(bytes)) {
      this.#request.sentBytes += bytes.length;
      return undefined;
    }
    return new Promise((resolve) => {
      this.#wake = () => {
        if (!this.isClosed) this.#request.sentBytes += bytes.length;
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** Ends the answer as whole. */
  end(bytes?: Uint8Array | string): void {
    this.#request.sentBytes += bytes?.length ?? 0;
    this.#response.end(bytes);
  }

  /** Breaks the connection once what was written has gone out; `reset` with an RST in place of a FIN. */
  async cut(how: "close" | "reset" = "close"): Promise<void> {
    this.#request.fate = "cut";
    const { socket } = this.#response;
    if (socket === null) return;
    await new Promise<unknown>((resolve) => socket.write("", resolve));
    if (how === "reset") socket.resetAndDestroy();
    else socket.destroy();
  }

  /** Sends a whole answer. */
  send(status: number, headers: Record<string, string>, body: string): void {
    this.#response.writeHead(status, { ...headers, "content-length": String(Buffer.byteLength(body)) });
    this.end(body);
  }
}
