/**
 * The HTTP/1.1 connections of a server, and how they end when it does.
 *
 * A client without notice may send its next request at any time, and a request that meets the end of its connection is
 * lost without its client knowing whether it began. So what drains says `Connection: close` in every answer that is still
 * to begin, and ends a connection itself only when that has been quiet for a while.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

interface Connection {
  /** The answers that its client waits for, oldest first; several when requests are pipelined. */
  readonly waiting: Set<ServerResponse>;
  /** Monotonic milliseconds: when it was opened, or its last answer ended. */
  quietSinceMs: number;
}

const sweepMs = 50;

/** Every open connection of a server. */
export class Http1Connections {
  readonly #open = new Map<Duplex, Connection>();
  #draining = false;

  add(socket: Duplex): void {
    this.#open.set(socket, { waiting: new Set(), quietSinceMs: performance.now() });
    socket.once("close", () => this.#open.delete(socket));
  }

  /** A request has come; returns how many wait on its connection. */
  begin(request: IncomingMessage, response: ServerResponse): number {
    if (this.#draining) response.setHeader("connection", "close");
    const connection = this.#open.get(request.socket);
    if (connection === undefined) return 1;
    connection.waiting.add(response);
    response.once("close", () => {
      connection.waiting.delete(response);
      connection.quietSinceMs = performance.now();
    });
    return connection.waiting.size;
  }

  /** The newest of the answers that a connection waits for. */
  newestAnswer(socket: Duplex): ServerResponse | undefined {
    return [...(this.#open.get(socket)?.waiting ?? [])].at(-1);
  }

  /** From now on answers that begin say `Connection: close`, of those that wait on one connection the last. */
  startDraining(): void {
    this.#draining = true;
    for (const socket of this.#open.keys()) {
      const last = this.newestAnswer(socket);
      if (last !== undefined && !last.headersSent) last.setHeader("connection", "close");
    }
  }

  /**
   * Ends each connection once it has waited for no answer for `quietMs`, until what this returns is called; then all
   * that are left, idle or not, are the caller's.
   */
  endQuiet(quietMs: number): () => void {
    const sweep = () => {
      const quietBeforeMs = performance.now() - quietMs;
      for (const [socket, { waiting, quietSinceMs }] of this.#open) {
        if (waiting.size === 0 && quietSinceMs <= quietBeforeMs) socket.destroy();
      }
    };
    sweep();
    const timer = setInterval(sweep, sweepMs);
    return () => clearInterval(timer);
  }
}
