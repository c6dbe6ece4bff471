/**
 * The way out to upstreams by websocket, for listening: each has a connection of its own.
 *
 * - Aborting and closing destroy the connection at once; there is no closing handshake to wait for.
 * - No redirect is followed, and a message that is too long ends the connection.
 * - Nothing holds messages back: whoever listens keeps what it needs.
 */
import type { Socket } from "node:net";
import { Agent, buildConnector, WebSocket } from "undici";
import { OutboundHttpError } from "./outbound-error.ts";

/** What to listen to. Header names in lower case. */
export interface OutboundWebSocketRequest {
  /** http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Longest message, bytes, unpacked. */
  readonly maxMessageBytes: number;
  /** Hears every message whole, in order. */
  onMessage(message: string | Uint8Array): void;
}

/** An open websocket. */
export interface OutboundWebSocket {
  /** Resolves when it has ended, for whatever reason. */
  readonly closed: Promise<void>;
  /** Ends it at once. */
  close(): void;
}

/** Longest time to connect, TLS included, and then to be answered. */
const timeouts = { connectMs: 5_000, answerMs: 10_000 };

/** Resolves once it is open. Throws OutboundHttpError: `aborted` by the signal, otherwise `connect`. */
export function openWebSocket(request: OutboundWebSocketRequest): Promise<OutboundWebSocket> {
  const { url, headers, signal, maxMessageBytes, onMessage } = request;
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(new OutboundHttpError("aborted", signal.reason));
      return;
    }
    const connection = new Connection(maxMessageBytes);
    const socket = new WebSocket(url.replace(/^http/, "ws"), {
      headers: { "user-agent": "media-gateway", ...headers },
      dispatcher: connection.agent,
    });
    socket.binaryType = "arraybuffer";
    const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
    const close = () => {
      socket.close();
      connection.end();
    };
    signal.addEventListener("abort", close);
    socket.addEventListener("open", () => resolve({ closed, close }));
    socket.addEventListener("message", ({ data }: { data: unknown }) => {
      if (typeof data === "string") onMessage(data);
      else if (data instanceof ArrayBuffer) onMessage(new Uint8Array(data));
    });
    socket.addEventListener("error", ({ error }) => {
      reject(new OutboundHttpError(signal.aborted ? "aborted" : "connect", signal.reason ?? error));
    });
    socket.addEventListener("close", () => {
      signal.removeEventListener("abort", close);
      connection.end();
      onClosed();
    });
  });
}

/** One connection and what makes it: the client lets go of a connection that has become a websocket. */
class Connection {
  readonly agent: Agent;
  #socket: Socket | undefined;
  #ended = false;

  constructor(maxPayloadSize: number) {
    const connect = buildConnector({ allowH2: false, timeout: timeouts.connectMs });
    this.agent = new Agent({
      allowH2: false,
      headersTimeout: timeouts.answerMs,
      webSocket: { maxPayloadSize },
      connect: (options, callback) =>
        connect(options, (...made) => {
          const [, socket] = made;
          this.#socket = socket ?? undefined;
          if (this.#ended) socket?.destroy();
          callback(...made);
        }),
    });
  }

  end(): void {
    this.#ended = true;
    this.#socket?.destroy();
    this.agent.destroy().catch(() => undefined);
  }
}
